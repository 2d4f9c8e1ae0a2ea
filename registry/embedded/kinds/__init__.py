"""The kinds that the embedded cluster serves: schemas, validation, table columns and protobuf messages."""
