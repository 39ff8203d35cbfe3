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

// The ports of containers.
const (
	PortPostgreSQL = 5432
	PortRelay      = 5433 // clients that an agent passes on to whom it knows to lead
	PortAgent      = 8443 // mTLS: peers and operator
	PortProbe      = 8080 // HTTP: kubelet's probes
	PortMetrics    = 9187 // HTTP: metrics for Prometheus, where postgres_exporter has them
)

// The variables of the environment that tell a program of a Pod what it must know from the first moment on.

// EnvUpgraded tells an agent the id of the upgrade whose data it must have.
const EnvUpgraded = "TOBAN_UPGRADED"

// EnvRestored tells an agent the id of the restore in place whose data it must have.
const EnvRestored = "TOBAN_RESTORED"

// EnvSurvivor tells an agent the instance that goes on with its own data as that of EnvRestored, "" for none.
const EnvSurvivor = "TOBAN_SURVIVOR"
