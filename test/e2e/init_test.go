//go:build e2e

package e2e

import (
	"strings"
	"testing"

	v1 "toban.dev/api/v1"
)

const sources = `
apiVersion: v1
kind: ConfigMap
metadata: {name: schema}
data:
  tables.sql: |
    CREATE TABLE customer (id int PRIMARY KEY, name text);
    INSERT INTO customer VALUES (1, 'Aki');
  wrong.sql: |
    INSERT INTO customer VALUES (2, 'Yuki');
    INSERT INTO custommer VALUES (3, 'typo');
  right.sql: |
    INSERT INTO customer VALUES (2, 'Yuki');
---
apiVersion: v1
kind: Secret
metadata: {name: accounts}
stringData:
  accounts.sql: |
    CREATE EXTENSION IF NOT EXISTS pgcrypto;
    CREATE TABLE account AS SELECT crypt('secret', gen_salt('bf')) AS hash;
`

const initial = `init:
  database: shopdb
  owner: keeper
  extensions: [pgcrypto]
  sql:
    - configMap: {name: schema, key: tables.sql}
    - secret: {name: accounts, key: accounts.sql}
`

// The first SQL runs once, as the owner, from ConfigMaps and Secrets. One that is not there is named, and waited for.
func TestInit(t *testing.T) {
	s := begin(t)
	s.apply(bare("shop", 1, initial))
	message := s.condition("shop", v1.ConditionInitialized, "False", v1.ReasonConfigMapNotFound)
	if !strings.Contains(message, "schema") {
		t.Errorf("the message %q does not name the ConfigMap", message)
	}
	configMap, secret, _ := strings.Cut(sources, "---\n")
	s.apply(configMap)
	message = s.condition("shop", v1.ConditionInitialized, "False", v1.ReasonSecretNotFound)
	if !strings.Contains(message, "accounts") {
		t.Errorf("the message %q does not name the Secret", message)
	}
	s.apply(secret)
	s.condition("shop", v1.ConditionInitialized, "True", v1.ReasonInitialized)
	s.ready("shop")
	for query, want := range map[string]string{
		"SELECT current_database() || ' ' || current_user":              "shopdb keeper",
		"SELECT count(*) FROM customer":                                 "1",
		"SELECT hash = crypt('secret', hash) FROM account":              "true",
		"SELECT rolsuper FROM pg_roles WHERE rolname = current_user":    "false",
		"SELECT tableowner FROM pg_tables WHERE tablename = 'customer'": "keeper",
		"SELECT count(*) FROM toban.init_step":                          "2",
		"SELECT extname FROM pg_extension WHERE extname = 'pgcrypto'":   "pgcrypto",
		"SELECT count(*) FROM pg_roles WHERE rolname = 'app'":           "0",
		"SELECT pg_encoding_to_char(encoding) FROM pg_database LIMIT 1": "UTF8",
	} {
		if got := s.ask("shop", query); got != want {
			t.Errorf("%s is %s, want %s", query, got, want)
		}
	}
	_, err := s.Kubectl(s.ctx, "patch", "sampledb", "shop", "--type=merge",
		"-p", `{"spec":{"init":{"owner":"another"}}}`)
	if err == nil || !strings.Contains(err.Error(), "runs only once") {
		t.Errorf("changing spec.init after it has run gives %v", err)
	}
}

// Failing SQL is told with its line, leaves nothing behind, and can be mended by
// editing the spec.
func TestFailingInitIsMended(t *testing.T) {
	s := begin(t)
	s.apply(sources)
	failing := `init: {sql: [{configMap: {name: schema, key: tables.sql}}, {configMap: {name: schema, key: KEY}}]}`
	s.apply(bare("shop", 1, strings.Replace(failing, "KEY", "wrong.sql", 1)))
	message := s.condition("shop", v1.ConditionInitialized, "False", v1.ReasonInitFailed)
	for _, want := range []string{"ConfigMap schema, key wrong.sql, line 2", `relation "custommer" does not exist`} {
		if !strings.Contains(message, want) {
			t.Errorf("the message lacks %q: %s", want, message)
		}
	}
	s.apply(bare("shop", 1, strings.Replace(failing, "KEY", "right.sql", 1)))
	s.condition("shop", v1.ConditionInitialized, "True", v1.ReasonInitialized)
	s.ready("shop")
	if got := s.ask("shop", "SELECT string_agg(id || name, ' ' ORDER BY id) FROM customer"); got != "1Aki 2Yuki" {
		t.Errorf("customer has %q", got)
	}
}
