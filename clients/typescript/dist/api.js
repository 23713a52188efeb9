// Generated from the OpenAPI document by clients/generate.py. Do not edit.
export {};
