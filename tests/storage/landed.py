"""The migrations that have landed: what each held then, and the first release that had it.

`python -m tests.storage.landed` prints the row of each file that is not in the table.
"""

import sys
from pathlib import Path
from typing import NamedTuple

from factbook import __version__
from factbook.storage.migrations import digest_migration, get_migration_texts


class Landed(NamedTuple):
    """A migration that somebody may have applied."""

    name: str
    release: str
    sha256: str


LANDED = (
    Landed(
        "0001_initial.sql",
        "0.1.0",
        "1b6aa73bc0dee7ba64926fb31b7f67cba7ce287136461d254511aac5cb0d8a15",
    ),
    Landed(
        "0002_catalog_queries.sql",
        "0.1.0",
        "cbf3c90d122d6d743636216d0ce4357d62f04ac9472f848b7073902441c6797e",
    ),
    Landed(
        "0003_collection_requests.sql",
        "0.1.0",
        "6b1cd8d5cff71c203c85341fdd6b0dd0dade5b0864118108a5d453d0b9cd5c99",
    ),
    Landed(
        "0004_collecting.sql",
        "0.1.0",
        "ced484cbcb2c4989786b9dca8ef27615bc4aba7cf81ee2a626a9ca6409c9ee95",
    ),
    Landed(
        "0005_custom_sources.sql",
        "0.1.0",
        "7744aafc71bd31d4e2bbb293aa137e9198f040d6f53e7de020ee62b4294de915",
    ),
    Landed(
        "0006_people.sql",
        "0.1.0",
        "17b1c8ad658595a41e100fce28a22e17c9c4286e95ee95598c8fe3bd70e01d24",
    ),
    Landed(
        "0007_audit.sql",
        "0.1.0",
        "9d3ec3d9a1e7c7d2e90a13db48c4a49d62e7840ce6ce85f900b52948de87d27a",
    ),
    Landed(
        "0008_connections.sql",
        "0.1.0",
        "e44c4f735b90e35f31535b7e44765e92da911bd1277157e18d81777dafa6c48a",
    ),
    Landed(
        "0009_pages.sql",
        "0.1.0",
        "9a8856950cf53a4021ee41b18be0dc336e3bf6089f138738c9e78eee4bef2c35",
    ),
    Landed(
        "0010_events.sql",
        "0.1.0",
        "e01493928127872f37dd3b41435fba24e77e5c21ee75b59f58295a33c998b5e1",
    ),
    Landed(
        "0011_upgrades.sql",
        "0.1.0",
        "8170091ab892af2efaf50f6c4a6f89ed9f7aea89dbf64fa4a7c5ad0d6647554c",
    ),
    Landed(
        "0012_audit_is_append_only.sql",
        "0.1.0",
        "220ef650d2520994ec90b3551d7d5725cd336301b928779f283450cf8124b1d3",
    ),
    Landed(
        "0013_housekeeping.sql",
        "0.1.0",
        "dde68c08dd2a119114aa481ce74fa34d005d8995fc3241c4bf808cb2aa3f0bbd",
    ),
    Landed(
        "0014_indexes_of_entities.sql",
        "0.1.0",
        "9055211d5536bb0d24be20bbd6863183219d33615c20ff549bbcc29938e46e5b",
    ),
    Landed(
        "0015_sealed_webhooks.sql",
        "0.1.0",
        "44e6d707bacdec71e3a2f9a7bf801181b68f8b62063919603df2fa8359461db1",
    ),
    Landed(
        "0016_run_gaps.sql",
        "0.1.0",
        "5bb8c3fcf77c6b172f039007d8048634a6bbebd33ef89981e7f332198a89905d",
    ),
    Landed(
        "0017_given_up_batches.sql",
        "0.1.0",
        "d38d61555f73e1168afd2bb1e4e9f5f853b253ab56453118a899283f6722cb6b",
    ),
    Landed(
        "0018_confirmations.sql",
        "0.1.0",
        "a8693bb879c3fa709b771080aba045e0f35d784f7a17f2582c6efea101921b56",
    ),
    Landed(
        "0019_importers.sql",
        "0.1.0",
        "f48525a5999778ae2ccceced42901ce3605370097e274b1dfdcf9329b6e46a16",
    ),
    Landed(
        "0020_import_runs.sql",
        "0.1.0",
        "512509699ab8cd9c6b8ce371f6b3346ad5440e48274b618ec6a0e3eb8191ed67",
    ),
    Landed(
        "0021_scim.sql",
        "0.1.0",
        "3748613e83e79c97737c7efa9312bed8cd091516187b3c87cb26a3c68b7ea1ff",
    ),
    Landed(
        "0022_stored_importers.sql",
        "0.1.0",
        "ccca2978595a55218a6f979a31f8d082b2db88b32b8d81022338bfdb379a741c",
    ),
    Landed(
        "0023_import_events.sql",
        "0.1.0",
        "689bf8b323aaf1bc5f86e8e745a68a0fc1ca640086b0e2546e83f28b0424df33",
    ),
    Landed(
        "0024_long_values.sql",
        "0.1.0",
        "8b10a90e7c52f9b03701e931aeb6520c38c5e7c82dc24a1347e4dc54f81ad303",
    ),
    Landed(
        "0025_arrivals.sql",
        "0.1.0",
        "e318f6bca7cd52bce8513797aa86e767c6aa98995399714b800cfbf7b3e56e46",
    ),
    Landed(
        "0026_whole_batches.sql",
        "0.1.0",
        "3d8a046de26b4e23c1dc803a3737c8946dc06004dc95586deacacece310c341d",
    ),
    Landed(
        "0027_order_of_batches.sql",
        "0.1.0",
        "147d311ca69c2be9b0236b4ba6558fa5b1c478d945b38b84cda153c1b2040aed",
    ),
    Landed(
        "0028_checks.sql",
        "0.1.0",
        "28538f0898d12b1087ccb1d6784dce14ce3fb572dbe3ba09ce6ac4efb479b402",
    ),
    Landed(
        "0029_scorecards.sql",
        "0.1.0",
        "ee650b199dbe311bc26caea27115bd8ee4b55b4763818596ec28a2e416294679",
    ),
    Landed(
        "0030_beginning_exemptions.sql",
        "0.1.0",
        "807d1dc038bd118398084cb90b7bb851c8f5514262bbe33bf372f071d31dc9a8",
    ),
    Landed(
        "0031_digests.sql",
        "0.1.0",
        "bb921474d7a8b76e058322f98bef08ff13eda32df797459b0836ffb8f2511abd",
    ),
    Landed(
        "0032_check_sweeps.sql",
        "0.1.0",
        "cdaaa046c71b4c0d94d3ae81057f781ad11176fbaddcc8b9fdbfcf6b47d35b01",
    ),
    Landed(
        "0033_digest_cadences.sql",
        "0.1.0",
        "5b12f8290299b4ba7b6e1062dae2fe5fdb9e270567f07556806a25f9b5f0e278",
    ),
    Landed(
        "0034_label_counts.sql",
        "0.1.0",
        "6f7ef686bd69497aa52ed880d4cd3d953833d39083e2d3a1662a23ca7af52bed",
    ),
    Landed(
        "0035_entities_by_update.sql",
        "0.1.0",
        "ecbe0ac19de7202952a67b62ee341af958e11f96a0f7e57eec1d862f9561ada0",
    ),
    Landed(
        "0036_token_usage.sql",
        "0.1.0",
        "e52f41d9c863787d08f752ba88911cde05bdb9678f38fa6b736428845fd92955",
    ),
    Landed(
        "0037_oauth.sql",
        "0.1.0",
        "69e2cd2d311c5d96941e81eea82706db6919ab02c4b64bd8f9c57d2486183e98",
    ),
    Landed(
        "0038_narrowed_tokens.sql",
        "0.1.0",
        "7be91400ca109235dd37f8f4d6d3e94d00c47eaf3c7c0660bc2b1385bbc5d65b",
    ),
    Landed(
        "0039_group_roles.sql",
        "0.1.0",
        "3492845e05ce3bef7b7eddec641c171a8edff00de81e966a39150fbc8d91be9c",
    ),
    Landed(
        "0040_audit_grants.sql",
        "0.1.0",
        "b074fd8886efabdd7051354a2d9674180500866fbeb90815ad03c0716c17ee38",
    ),
    Landed(
        "0041_without_owner.sql",
        "0.1.0",
        "2c72136465f7dbbbce43afe1dace5ea9fb459dcb60fbcf4e46cfb029eade3429",
    ),
    Landed(
        "0042_room_for_states.sql",
        "0.1.0",
        "76e7062d51a99a25c8da2aba717c441a84b690bdaa38a54a5779d7909ff470a7",
    ),
    Landed(
        "0043_proven_accounts.sql",
        "0.1.0",
        "b0efed9d156e3933e38576c8ebf40e51c0ff594ce137df4a1a22d12c8c145f78",
    ),
    Landed(
        "0044_erasures.sql",
        "0.1.0",
        "3baf0cd05fc6118cf347d3bf90ee984041e26eb0579f5699d22e59db97d4b749",
    ),
    Landed(
        "0045_external_ids.sql",
        "0.1.0",
        "3d2a0875863c055ea41884c0354f3ee71fe607d3dde4df0f3d64c01195b4966a",
    ),
    Landed(
        "0046_removed_by_external_id.sql",
        "0.1.0",
        "d9a385d094b3a2ccf08a6c2f365bc2ba5c90668c386d18bf2cde3dd8392d85dd",
    ),
)

# Three of them had another form before, with which databases were made: their first texts.
EDITED = Path(__file__).with_name("edited")
EARLIER = {
    "0001_initial.sql": "6037151f3c3dfd34774dc47cf5f94c55c9d1791a0a2ea4e2619e37fb235c379d",
    "0002_catalog_queries.sql": "bd08f2c5b710486fb943d720d4af32930c3e36a7b34ea0c1f76de4615475c567",
    "0005_custom_sources.sql": "05a2a2ab4b5fb5d46e7952fe08397cb89cc9ce8b0df772044ab4654c26ecda60",
}


def earlier_text(name: str) -> str:
    """The text that a migration had first."""
    return (EDITED / name).read_text("utf-8")


if __name__ == "__main__":
    known = {each.name for each in LANDED}
    for name, text in get_migration_texts().items():
        if name not in known:
            sys.stdout.write(
                f'    Landed("{name}", "{__version__}", "{digest_migration(text)}"),\n'
            )
