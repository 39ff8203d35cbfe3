package naming

import (
	"regexp"
	"strings"
	"testing"
)

// maxInstances is the most that the CRD allows, so the highest ordinal is one less.
const maxInstances = 9

// Names that a SampleDB may have, at the limits of the CRD's rule.
var legal = map[string]string{
	"the shortest":                 "a",
	"the longest":                  strings.Repeat("a", MaxName),
	"the longest, with digits":     "a" + strings.Repeat("0", MaxName-1),
	"the longest, with hyphens":    "a" + strings.Repeat("-", MaxName-2) + "a",
	"one that ends as an instance": "shop-3",
}

var (
	dnsLabel   = regexp.MustCompile(`^[a-z]([-a-z0-9]*[a-z0-9])?$`)
	labelValue = regexp.MustCompile(`^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$`)
	labelKey   = regexp.MustCompile(
		`^([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$`)
	identifier = regexp.MustCompile(`^[a-z0-9_]+$`)
)

// maxLabel is the length of a DNS label, of a label's value, and of an
// identifier in PostgreSQL (bytes).
const maxLabel = 63

func TestEveryNameIsADNSLabel(t *testing.T) {
	const hash = "0123abcd" // of desired.Hash
	for sentence, db := range legal {
		names := map[string]string{
			"the StatefulSet":            StatefulSet(db),
			"the read-write Service":     ReadWriteService(db),
			"the read-only Service":      ReadOnlyService(db),
			"the headless Service":       HeadlessService(db),
			"the ConfigMap":              ConfigMap(db),
			"the authority's Secret":     AuthoritySecret(db),
			"the authority's revision":   AuthorityRevision(db, "1000"),
			"the application's revision": AppRevision(db, "1000-ca-1000-1001"),
			"the application Secret":     AppSecret(db),
			"the ServiceAccount":         ServiceAccount(db),
			"the Role":                   Role(db),
			"the budget":                 Budget(db),
			"the NetworkPolicy":          NetworkPolicy(db),
			"the Lease":                  Lease(db),
			"the init Job":               InitJob(db, hash),
			// Kubernetes adds these itself, the second and third as labels of Pods.
			"a Pod of the init Job":   InitJob(db, hash) + "-x1y2z",
			"the StatefulSet's hash":  StatefulSet(db) + "-0123456789",
			"the last instance":       Instance(db, maxInstances-1),
			"the last instance's PVC": Claim(db, maxInstances-1),
		}
		for what, name := range names {
			t.Run(sentence+": "+what, func(t *testing.T) {
				if len(name) > maxLabel || !dnsLabel.MatchString(name) {
					t.Errorf("%q has %d characters or is no DNS label", name, len(name))
				}
			})
		}
	}
}

// Where two objects of a kind had the same name, one would be taken for the other.
func TestNamesOfAKindDiffer(t *testing.T) {
	for kind, name := range map[string][]func(string) string{
		"Services":     {ReadWriteService, ReadOnlyService, HeadlessService},
		"Secrets":      {AuthoritySecret, AppSecret},
		"what is read": {ConfigMap, AuthoritySecret, AppSecret},
	} {
		t.Run(kind, func(t *testing.T) {
			seen := map[string]bool{}
			for _, f := range name {
				if seen[f("shop")] {
					t.Errorf("two are called %s", f("shop"))
				}
				seen[f("shop")] = true
			}
		})
	}
}

func TestEveryHostIsADNSName(t *testing.T) {
	namespace := strings.Repeat("n", maxLabel)
	for sentence, db := range legal {
		for what, host := range map[string]string{
			"an instance": InstanceHost(db, namespace, maxInstances-1),
			"a Service":   ServiceHost(HeadlessService(db), namespace),
		} {
			t.Run(sentence+": "+what, func(t *testing.T) {
				// The cluster's own domain comes after it.
				if full := host + ".cluster.local"; len(full) > 253 {
					t.Errorf("%s has %d characters", full, len(full))
				}
				for part := range strings.SplitSeq(host, ".") {
					if len(part) > maxLabel || !dnsLabel.MatchString(part) {
						t.Errorf("%q in %s is no DNS label", part, host)
					}
				}
			})
		}
	}
}

func TestEveryLabelIsLegal(t *testing.T) {
	for sentence, db := range legal {
		for what, labels := range map[string]map[string]string{
			"those of every object":    Common(db),
			"those of the instances":   InstanceSelector(db),
			"those of the primary":     RoleSelector(db, "primary"),
			"those that are set alone": {LabelComponent: ComponentInit, LabelRole: "standby"},
		} {
			t.Run(sentence+": "+what, func(t *testing.T) {
				for key, value := range labels {
					if !labelKey.MatchString(key) || len(value) > maxLabel || !labelValue.MatchString(value) {
						t.Errorf("%s=%s is no legal label", key, value)
					}
				}
			})
		}
	}
	for _, key := range []string{AnnotationApplied, AnnotationFacets, AnnotationSources, AnnotationDefaultContainer,
		Finalizer, AnnotationSwitchover, AnnotationSwitchoverFrom, AnnotationSwitchoverAt,
		AnnotationSwitchoverRefused} {
		if !labelKey.MatchString(key) {
			t.Errorf("%s is no legal key", key)
		}
	}
}

// A role's selector must not change that of all instances.
func TestSelectorsAreTheirOwn(t *testing.T) {
	all := InstanceSelector("shop")
	RoleSelector("shop", "primary")[LabelSampleDB] = "other"
	if len(all) != 2 || all[LabelSampleDB] != "shop" || len(InstanceSelector("shop")) != 2 {
		t.Errorf("the instances' selector has become %v", all)
	}
}

func TestSlots(t *testing.T) {
	seen := map[string]string{}
	for sentence, db := range legal {
		for ordinal := range maxInstances {
			instance := Instance(db, ordinal)
			slot := Slot(instance)
			if len(slot) > maxLabel || !identifier.MatchString(slot) {
				t.Errorf("%s: %q is no legal name of a slot", sentence, slot)
			}
			if other := seen[slot]; other != "" {
				t.Errorf("%s and %s have the same slot %s", instance, other, slot)
			}
			seen[slot] = instance
		}
	}
}

func TestOrdinal(t *testing.T) {
	for sentence, c := range map[string]struct {
		name  string
		want  int
		known bool
	}{
		"the first instance":                {Instance("shop", 0), 0, true},
		"the last instance":                 {Instance("shop", maxInstances-1), maxInstances - 1, true},
		"the claim of an instance":          {Claim("shop", 3), 3, true},
		"two digits":                        {Instance("shop", 12), 12, true},
		"a SampleDB that ends in a number":  {Instance("shop-7", 1), 1, true},
		"a SampleDB that ends in a hyphen":  {"shop--1", 1, true},
		"no hyphen":                         {"shop7", 0, false},
		"nothing":                           {"", 0, false},
		"nothing after the hyphen":          {"shop-", 0, false},
		"letters after the hyphen":          {"shop-ro", 0, false},
		"a number and letters":              {"shop-1a", 0, false},
		"the Pod of an init Job":            {"shop-init-0123abcd-x1y2z", 0, false},
		"more than an int takes":            {"shop-99999999999999999999", 0, false},
		"the claim of another kind of name": {"data", 0, false},
	} {
		t.Run(sentence, func(t *testing.T) {
			got, known := Ordinal(c.name)
			if known != c.known || known && got != c.want {
				t.Errorf("Ordinal(%q) = %d, %t, want %d, %t", c.name, got, known, c.want, c.known)
			}
		})
	}
}

// Where archive.json is lost, the folder's name says whose an archive is.
func TestWhoseAnArchiveIsByItsFolder(t *testing.T) {
	first := ArchivePath("shop", "main-pg17", "1a2b3c4d-5e6f")
	for path, want := range map[string]string{
		first:                       "shop main-pg17 1a2b3c4d",
		MajorArchivePath(first, 18): "shop main-pg17 1a2b3c4d",
		"shop/main":                 "",
		"shop/main-1a2b3c4":         "",
		"shop/main-logs4you":        "",
		"shop/-1a2b3c4d":            "",
		"/main-1a2b3c4d":            "",
		"main-1a2b3c4d":             "",
		"all/shop/main-1a2b3c4d":    "",
		"shop/Ma in-1a2b3c4d":       "",
		"shop/..-1a2b3c4d":          "",
		"shop/main\n-1a2b3c4d":      "",
		"shop\n/main-1a2b3c4d":      "",
		"Shop/main-1a2b3c4d":        "",
	} {
		namespace, db, uid, ok := OfArchivePath(path)
		if got := namespace + " " + db + " " + uid; ok != (want != "") || ok && got != want {
			t.Errorf("%s is of %q, %t", path, got, ok)
		}
	}
}

func TestArchivesOfMajorVersions(t *testing.T) {
	first := ArchivePath("shop", "main-pg17", "1a2b3c4d-5e6f")
	for path, want := range map[string]int{
		first: 0, MajorArchivePath(first, 18): 18, first + "-pg": -1, first + "-pgx": -1,
	} {
		of, major := FirstArchivePath(path)
		if want >= 0 && (of != first || major != want) || want < 0 && (of != path || major != 0) {
			t.Errorf("%s is of %s, version %d", path, of, major)
		}
	}
}

// A second side is a SampleDB too, whose names have to be legal, and no two SampleDBs have the same.
func TestTheNameOfASecondSide(t *testing.T) {
	if got := Green("shop"); got != "shop-green" {
		t.Errorf("it is %s", got)
	}
	for sentence, db := range legal {
		if green := Green(db); len(green) > MaxName || !dnsLabel.MatchString(green) || green == db {
			t.Errorf("%s: it is %s", sentence, green)
		}
	}
	long := strings.Repeat("n", MaxName-1)
	if a, b := Green(long+"a"), Green(long+"b"); a == b {
		t.Errorf("two have the second side %s", a)
	}
}
