package naming

// The Pods of an upgrade to another major version.
const (
	// PathFormer is a volume with the programs of the former major version, which an init container in the former image
	// has collected. It has the same path in all containers.
	PathFormer = "/opt/former"
	// PathUpgrade is the ConfigMap with the settings, KeyUpgrade the file in it.
	PathUpgrade = "/etc/toban/upgrade"
	KeyUpgrade  = "upgrade.json"
	// PathScratch is a volume of the check's own, for a pair of servers without rows.
	PathScratch = "/scratch"
	// IdentityUpgrade is whose certificate the Pod of an upgrade shows.
	IdentityUpgrade = "toban:upgrade"
)
