-- Reader::deliveries_of, earliest first: each subscriber is served by itself, however much waits for the others.
CREATE INDEX deliveries_by_webhook ON deliveries (webhook, due_at);
