package protocol

import (
	"bytes"
	"encoding/json"
	"testing"

	"toban.dev/internal/ha"
)

// What agents say to each other is understood or an error; what is understood stays the same when it is passed on.
func FuzzMessages(f *testing.F) {
	for _, text := range []string{
		`{"name":"db-0","role":"primary","term":7,"election":{"voter":"db-0/1a2b","lineage":[{"term":1}],"record":{}}}`,
		`{"leader":"db-0","voter":"db-1/00","record":{"term":7,"version":2}}`,
		`{"term":18446744073709551615,"candidate":"db-0/1","voter":"x","position":{"term":1,"lsn":5}}`,
		`{"granted":true,"ballot":{"term":1,"leader":"db-0"}}`,
		`{"cluster":"db","members":[{"name":"db-0","host":"h","address":"1.2.3.4"}],"parameters":{"a":"b"}}`,
		`null`, `[]`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, message := range []func() any{
			func() any { return &Status{} }, func() any { return &Proposal{} }, func() any { return &Config{} },
			func() any { return &ha.VoteRequest{} }, func() any { return &ha.VoteReply{} },
			func() any { return &Switchover{} }, func() any { return &Restart{} },
		} {
			first, second := message(), message()
			if json.Unmarshal(text, first) != nil {
				continue
			}
			written := encoded(t, first)
			if err := json.Unmarshal(written, second); err != nil {
				t.Fatalf("%T: %s can't be read again: %v", first, written, err)
			}
			if again := encoded(t, second); !bytes.Equal(again, written) {
				t.Errorf("%T: %s becomes %s", first, written, again)
			}
		}
		var c, moved Config
		if json.Unmarshal(text, &c) != nil || json.Unmarshal(text, &moved) != nil {
			return
		}
		for i := range moved.Members {
			moved.Members[i].Address = "10.0.0.1"
		}
		if a, b := c.Revise(), moved.Revise(); a.Revision != b.Revision || a.Revise().Revision != a.Revision {
			t.Errorf("the revision %s changes with an address: %s", a.Revision, b.Revision)
		}
	})
}

func encoded(t *testing.T, message any) []byte {
	t.Helper()
	text, err := json.Marshal(message)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
