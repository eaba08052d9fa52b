// What @backstage/catalog-model says: a question a line on stdin, its answer a line on stdout.
//
//   {"entity": …}                        → {"valid"} or {"refused": message}
//   {"text": …, "defaults": {…}}         → {"kind", "namespace", "name"} or {"refused"}
//   {"parts": {kind, namespace?, name}}  → {"reference"}
//   {"location": …}                      → {"type", "target"} or {"refused"}
//   {"url": …}                           → {"valid"} or {"refused"}
//
// An entity passes the same steps as in the catalog of that project, in their order: the envelope,
// its locations, the policies, the schema again, the validators of the kinds, the references.

import { createRequire } from "node:module";
import { createInterface } from "node:readline";

// The package's modules for Node are CommonJS.
const require = createRequire(import.meta.url);
const model = require("@backstage/catalog-model");
const alpha = require("@backstage/catalog-model/alpha");

const envelope = model.entityEnvelopeSchemaValidator();
const schema = model.entitySchemaValidator();
const policy = model.EntityPolicies.allOf([
  new model.SchemaValidEntityPolicy(),
  new model.DefaultNamespaceEntityPolicy(),
  new model.NoForeignRootFieldsEntityPolicy(),
  new model.FieldFormatEntityPolicy(model.makeValidator()),
]);
const builtIn = [
  model.apiEntityV1alpha1Validator,
  model.componentEntityV1alpha1Validator,
  model.resourceEntityV1alpha1Validator,
  model.groupEntityV1alpha1Validator,
  model.locationEntityV1alpha1Validator,
  model.userEntityV1alpha1Validator,
  model.systemEntityV1alpha1Validator,
  model.domainEntityV1alpha1Validator,
  alpha.aiResourceEntityV1alpha1Validator,
];
// A type of these replaces the form of its kind.
const byType = {
  "API/mcp-server": alpha.mcpServerApiEntityValidator,
  "AiResource/skill": alpha.skillAiResourceEntityV1alpha1Validator,
  "AiResource/rule": alpha.ruleAiResourceEntityV1alpha1Validator,
  "AiResource/plugin": alpha.pluginAiResourceEntityV1alpha1Validator,
  "AiResource/marketplace": alpha.marketplaceAiResourceEntityV1alpha1Validator,
};
const compiled = alpha.compileCatalogModel([
  alpha.defaultCatalogEntityModel,
  alpha.aiResourceEntityModel,
  alpha.mcpServerApiEntityModel,
]);

async function checkKind(entity) {
  const own = byType[`${entity.kind}/${entity.spec?.type}`];
  for (const validator of own ? [own] : builtIn) {
    if (await validator.check(entity)) {
      return;
    }
  }
  throw new Error("foreign kind or apiVersion");
}

function checkReferences(entity) {
  for (const field of compiled.getKind(entity)?.relationFields ?? []) {
    const value = field.path.split(".").reduce((from, key) => from?.[key], entity);
    for (const text of Array.isArray(value) ? value : [value]) {
      if (text && typeof text === "string") {
        model.parseEntityRef(text, { defaultKind: field.defaultKind });
      }
    }
  }
}

async function checkEntity(entity) {
  envelope(entity);
  for (const key of [model.ANNOTATION_LOCATION, model.ANNOTATION_ORIGIN_LOCATION]) {
    const annotations = entity.metadata.annotations;
    if (annotations && Object.hasOwn(annotations, key)) {
      model.parseLocationRef(annotations[key]);
    }
  }
  const enforced = await policy.enforce(entity);
  schema(enforced);
  await checkKind(enforced);
  checkReferences(enforced);
}

async function answer(question) {
  if ("entity" in question) {
    await checkEntity(question.entity);
    return { valid: true };
  }
  if ("text" in question) {
    return model.parseEntityRef(question.text, question.defaults);
  }
  if ("parts" in question) {
    return { reference: model.stringifyEntityRef(question.parts) };
  }
  if ("location" in question) {
    return model.parseLocationRef(question.location);
  }
  return { valid: Boolean(new URL(question.url)) };
}

for await (const line of createInterface({ input: process.stdin, crlfDelay: Infinity })) {
  let answered;
  try {
    answered = await answer(JSON.parse(line));
  } catch (error) {
    answered = { refused: `${error.message}` };
  }
  process.stdout.write(`${JSON.stringify(answered)}\n`);
}
