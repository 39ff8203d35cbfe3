package protocol

import (
	"reflect"
	"slices"
	"testing"
	"time"
)

func config() Config {
	return Config{
		Cluster: "x", Namespace: "shop", Major: 17,
		Members: []Member{
			{Name: "x-0", Host: "x-0.x-instances.shop.svc", Address: "10.0.0.1"},
			{Name: "x-1", Host: "x-1.x-instances.shop.svc"},
		},
		SystemIdentifier: "7300000000000000001",
		Parameters:       map[string]string{"work_mem": "4MB"},
		HBA:              []string{"host all all all scram-sha-256"},
		Authority:        "authority", Operator: "operator", ServerNames: []string{"x.shop.svc"},
		Durability: DurabilityQuorum, Witness: "a UID",
	}
}

func TestReviseIgnores(t *testing.T) {
	was := config().Revise().Revision
	for name, change := range map[string]func(*Config){
		"the former revision":          func(c *Config) { c.Revision = "hoge" },
		"an address that is new":       func(c *Config) { c.Members[1].Address = "10.0.0.2" },
		"an address that has changed":  func(c *Config) { c.Members[0].Address = "10.0.9.9" },
		"an address that is not known": func(c *Config) { c.Members[0].Address = "" },
		"the number of readers":        func(c *Config) { c.Readers = 7 },
		"whether clients are idle":     func(c *Config) { c.Idles = true },
		"that poolers are to hold":     func(c *Config) { c.Holds = true },
	} {
		t.Run(name, func(t *testing.T) {
			c := config()
			change(&c)
			if got := c.Revise().Revision; got != was {
				t.Errorf("the revision has changed from %s to %s", was, got)
			}
		})
	}
}

func TestReviseNotices(t *testing.T) {
	was := config().Revise().Revision
	changes := map[string]func(*Config){
		"Cluster":          func(c *Config) { c.Cluster = "y" },
		"Namespace":        func(c *Config) { c.Namespace = "other" },
		"Major":            func(c *Config) { c.Major = 18 },
		"Preferred":        func(c *Config) { c.Preferred = []string{"x-1", "x-0"} },
		"Members":          func(c *Config) { c.Members = c.Members[:1] },
		"SystemIdentifier": func(c *Config) { c.SystemIdentifier = "" },
		"Parameters":       func(c *Config) { c.Parameters["work_mem"] = "5MB" },
		"HBA":              func(c *Config) { c.HBA = append(c.HBA, "local all all trust") },
		"Authority":        func(c *Config) { c.Authority = "another" },
		"Operator":         func(c *Config) { c.Operator = "another" },
		"ServerNames":      func(c *Config) { c.ServerNames = nil },
		"Durability":       func(c *Config) { c.Durability = DurabilityAsync },
		"Witness":          func(c *Config) { c.Witness = "another" },
		"Archive":          func(c *Config) { c.Archive = &Archive{Path: "ns/x"} },
		"Closed":           func(c *Config) { c.Closed = true },
		"Restored":         func(c *Config) { c.Restored = "oops" },
		"Survivor":         func(c *Config) { c.Survivor = "db-1" },
		"RestoredBefore":   func(c *Config) { c.RestoredBefore = "oops" },
		"RemoveBefore":     func(c *Config) { c.RemoveBefore = true },
		"Prepares":         func(c *Config) { c.Prepares = true },
		"Certificate":      func(c *Config) { c.Certificate = &Certificate{Secret: "shop-tls"} },
		"Given":            func(c *Config) { c.Given = "another" },
		"FirstMajor":       func(c *Config) { c.FirstMajor = 15 },
		"Upgraded":         func(c *Config) { c.Upgraded = "18-0a1b2c" },
		"RemoveUpgraded":   func(c *Config) { c.RemoveUpgraded = "18-0a1b2c" },
		"Link":             func(c *Config) { c.Link = true },
		"Pooler":           func(c *Config) { c.Pooler = true },
		"Relay":            func(c *Config) { c.Relay = true },
		"ReadMaxLag":       func(c *Config) { c.ReadMaxLag = time.Second },
		"Metrics":          func(c *Config) { c.Metrics = &Metrics{None: true} },

		"Members, by name":      func(c *Config) { c.Members[1].Name = "x-2" },
		"Members, by host":      func(c *Config) { c.Members[1].Host = "x-2" },
		"Members, by order":     func(c *Config) { c.Members[0], c.Members[1] = c.Members[1], c.Members[0] },
		"Parameters, one more":  func(c *Config) { c.Parameters["max_connections"] = "7" },
		"HBA, where one is cut": func(c *Config) { c.HBA = []string{"host all all all", "scram-sha-256"} },
	}
	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			c := config()
			change(&c)
			if c.Revise().Revision == was {
				t.Error("the revision is the same")
			}
		})
	}
	ignored := []string{"Revision", "Readers", "Idles", "Holds"}
	for _, field := range reflect.VisibleFields(reflect.TypeFor[Config]()) {
		if changes[field.Name] == nil && !slices.Contains(ignored, field.Name) {
			t.Errorf("Config has a field %s that no case changes", field.Name)
		}
	}
}

// Revise returns a config and leaves the one it was given, with its addresses, alone.
func TestReviseChangesTheRevisionOnly(t *testing.T) {
	given := config()
	got := given.Revise()
	if !reflect.DeepEqual(given, config()) {
		t.Errorf("the given config has become %+v", given)
	}
	got.Revision = ""
	if !reflect.DeepEqual(got, config()) {
		t.Errorf("it has become %+v", got)
	}
}
