-- Reader::deliveries_of, earliest first: each subscriber is served by itself, however much waits for the others. Nobody
-- asks for what is due to everybody any more.
CREATE INDEX deliveries_by_webhook ON deliveries (webhook, due_at);
DROP INDEX deliveries_by_due;
