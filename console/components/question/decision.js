// What a supervisor may decide, as a schema for the form in which a held decision is edited.
const confidence = { type: "number", minimum: 0, maximum: 1, title: "Confidence", description: "Yours now; it is not judged again." };

export const decisionSchema = {
  oneOf: [
    {
      title: "Hand over to workers", type: "object", required: ["kind", "nextWorkerIds"], additionalProperties: false,
      properties: {
        kind: { const: "next-worker" },
        nextWorkerIds: { type: "array", minItems: 1, items: { type: "string", minLength: 1 }, title: "Workers" },
        nextWorkerInputs: { title: "Inputs, one object per worker" },
        confidence,
      },
    },
    { title: "Ask a human", type: "object", required: ["kind", "prompt"], additionalProperties: false, properties: { kind: { const: "ask-user" }, prompt: { type: "string", minLength: 1, maxLength: 4000, title: "Question" }, confidence } },
    { title: "Finish", type: "object", required: ["kind"], additionalProperties: false, properties: { kind: { const: "terminate" }, reason: { type: "string", title: "Reason" }, confidence } },
  ],
};
