"""A GitLab that tests run: GraphQL on the part of its schema that is used, REST, and limits."""
