package archive

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/operator/sampledb/world"
)

func TestKeysHeld(t *testing.T) {
	const former, now = "age1former", "age1now"
	encryption := &v1.EncryptionSpec{Recipient: now, Key: v1.SecretReference{Name: "archive-key"}}
	current := v1.ArchiveKey{Recipient: now, Backups: 1, WAL: 2, Held: true}
	for name, c := range map[string]struct {
		encryption *v1.EncryptionSpec
		keys       []v1.ArchiveKey
		reason     string
		says       []string
		notSays    string
	}{
		"nothing is encrypted":  {nil, []v1.ArchiveKey{current}, "", nil, ""},
		"nobody has looked yet": {encryption, nil, "", nil, ""},
		"one key":               {encryption, []v1.ArchiveKey{current}, v1.ReasonKeysHeld, nil, "taken out"},
		"the recipient was just changed": {
			encryption, []v1.ArchiveKey{{Recipient: former, Backups: 3, Held: true}}, v1.ReasonKeyNotTried,
			[]string{now, "archive-key"}, "",
		},
		"the former key is needed": {
			encryption, []v1.ArchiveKey{current, {Recipient: former, Backups: 3, WAL: 9, Held: true}},
			v1.ReasonKeysHeld, []string{"Keep the former key " + former, "3 backups and 9 objects of WAL"}, "taken out",
		},
		"only WAL needs the former key": {
			encryption, []v1.ArchiveKey{current, {Recipient: former, WAL: 9, Held: true}}, v1.ReasonKeysHeld,
			[]string{"Keep the former key " + former + ", which 9 objects"}, "taken out",
		},
		"nothing needs the former key": {
			encryption, []v1.ArchiveKey{current, {Recipient: former, Held: true}}, v1.ReasonKeysHeld,
			[]string{"Nothing in the archive needs " + former, "taken out"}, "Keep",
		},
		"it is not known what some of it needs": {
			encryption, []v1.ArchiveKey{current, {WAL: 3}, {Recipient: former, Held: true}}, v1.ReasonKeysHeld,
			[]string{"Keep every former key"}, "taken out",
		},
		"the former key was taken out too early": {
			encryption, []v1.ArchiveKey{current, {Recipient: former, WAL: 9}}, v1.ReasonKeyMissing,
			[]string{"archive-key", former, "put it back"}, now,
		},
		"the new key was not put in": {
			encryption, []v1.ArchiveKey{{Recipient: now}, {Recipient: former, Backups: 3, Held: true}},
			v1.ReasonKeyMissing, []string{now}, former,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := topicsOf(world.Core{DB: &v1.SampleDB{}, Backup: &v1.BackupSpec{Encryption: c.encryption}})
			got := s.KeysHeld(&v1.BackupStatus{Keys: c.keys})
			if got.Reason != c.reason || got.Reason != "" &&
				(got.Status == metav1.ConditionTrue) != (c.reason == v1.ReasonKeysHeld) {
				t.Errorf("it is %+v, want %s", got, c.reason)
			}
			for _, words := range c.says {
				if !strings.Contains(got.Message, words) {
					t.Errorf("%q does not say %q", got.Message, words)
				}
			}
			if c.notSays != "" && strings.Contains(got.Message, c.notSays) {
				t.Errorf("%q says %q", got.Message, c.notSays)
			}
		})
	}
}

// A change of the key asks for a full backup at once: until the last complete one is for the new key.
func TestAChangedKeyAsksForABackup(t *testing.T) {
	ended := time.Date(2026, 11, 23, 3, 5, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		was, is string
		due     bool
	}{
		"the same key":           {"age1a", "age1a", false},
		"another key":            {"age1a", "age1b", true},
		"from now on encrypted":  {"", "age1b", true},
		"no longer encrypted":    {"age1a", "", true},
		"never encrypted at all": {"", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			key := func(recipient string) *v1.EncryptionSpec {
				if recipient == "" {
					return nil
				}
				return &v1.EncryptionSpec{Recipient: recipient}
			}
			s := topicsOf(world.Core{
				DB: &v1.SampleDB{}, Backup: &v1.BackupSpec{Encryption: key(c.is)}, Now: ended.Add(time.Minute),
			})
			s.InitializedAt = &metav1.Time{Time: ended.Add(-time.Hour)}
			s.DB.Name, s.DB.Namespace, s.DB.UID = "main", "shop", "12345678-1"
			s.DB.Status.Conditions = []metav1.Condition{{
				Type: v1.ConditionArchiving, Status: metav1.ConditionTrue, Reason: v1.ReasonArchiving,
				LastTransitionTime: metav1.NewTime(ended.Add(-time.Hour)),
			}}
			at := metav1.NewTime(ended)
			s.Seen.Backups = []v1.DatabaseBackup{{
				ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(ended.Add(-time.Minute))},
				Status: v1.DatabaseBackupStatus{
					ID: "b", CompletedAt: &at,
					Archive:    &v1.ArchiveReference{Path: s.ArchivePath(), Encryption: key(c.was)},
					Conditions: []metav1.Condition{{Type: v1.ConditionComplete, Status: metav1.ConditionTrue}},
				},
			}}
			got, err := s.backupPlan().decide()
			if err != nil || got.Due.Equal(ended) != c.due || got.Full != c.due {
				t.Errorf("it is %+v, %v; due: %v", got, err, c.due)
			}
		})
	}
}
