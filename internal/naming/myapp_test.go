package naming

import "testing"

func TestEveryNameOfAMyAppIsADNSLabel(t *testing.T) {
	const hash = "0123abcd" // of desired.Hash
	for sentence, app := range legal {
		for what, name := range map[string]string{
			"the Deployment":         App(app),
			"the leader's Service":   LeaderService(app),
			"the Job of a migration": MigrationJob(app, hash),
			// Kubernetes adds these itself; all are labels too.
			"a Pod of the Deployment": App(app) + "-0123456789-x1y2z",
			"a Pod of a migration":    MigrationJob(app, hash) + "-x1y2z",
		} {
			t.Run(sentence+": "+what, func(t *testing.T) {
				if len(name) > maxLabel || !dnsLabel.MatchString(name) {
					t.Errorf("%q has %d characters or is no DNS label", name, len(name))
				}
			})
		}
		// The CRD's rule for a DatabaseBackup, whose Job bears its name.
		if name := MigrationBackup(app, hash); len(name) > 57 || !dnsLabel.MatchString(name) {
			t.Errorf("%s: %q has %d characters or is no DNS label", sentence, name, len(name))
		}
	}
}

func TestEveryLabelOfAMyAppIsLegal(t *testing.T) {
	for sentence, app := range legal {
		for what, labels := range map[string]map[string]string{
			"those of every object":  AppLabels(app),
			"those of the Pods":      AppSelector(app),
			"those of the leader":    LeaderSelector(app),
			"those of the migration": {LabelComponent: ComponentMigrate},
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
	for _, key := range []string{
		AnnotationConfig, AnnotationConnection, AnnotationSecrets, AnnotationRetry, AnnotationMigration,
		AnnotationRevision, AnnotationTemplate,
	} {
		if !labelKey.MatchString(key) {
			t.Errorf("%s is no legal key", key)
		}
	}
}

// The leader's Service must not select by anything that other Pods have too, nor the Pods'
// selector take a migration's in.
func TestSelectorsOfAMyAppAreApart(t *testing.T) {
	if s := LeaderSelector("shop"); len(s) != 1 || s[LabelLeaderOf] != "shop" {
		t.Errorf("the leader is selected by %v", s)
	}
	if s := AppSelector("shop"); s[LabelComponent] != ComponentApp || ComponentApp == ComponentMigrate ||
		s[LabelMyApp] != "shop" {
		t.Errorf("the Pods are selected by %v", s)
	}
}
