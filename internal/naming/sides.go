package naming

// A blue/green upgrade (docs/bluegreen.md).
const (
	// PathSides is the ConfigMap with the settings in the Pod of one, KeySides the file in it.
	PathSides = "/etc/toban/sides"
	KeySides  = "sides.json"
	// PathGreenAuthority is the Secret with the authority of the second side there; that of the first is PathAuthority.
	PathGreenAuthority = "/etc/toban/green-authority"
	// IdentitySides is whose certificate that Pod shows the operator.
	IdentitySides = "toban:sides"
	// IdentityGreen is in the certificate of NAME's authority that the servers of the second side show clients. It is
	// one of nobody who may do anything with NAME.
	IdentityGreen = "toban:green"
)

const greenSuffix = "-green"

// Green is the SampleDB of the second side. Of a long name it has the beginning.
func Green(db string) string { return fitted(db, MaxName-len(greenSuffix)) + greenSuffix }

// GreenCertificate is the Secret with the certificate that the second side shows clients: NAME's authority issues it.
func GreenCertificate(db string) string { return db + "-green-tls" }

// GreenCertificateRevision is what that Secret with some content belongs to: it goes with that.
func GreenCertificateRevision(db, content string) string { return GreenCertificate(db) + "-" + content }

// SidesConfigMap is that of the Pods of a blue/green upgrade.
func SidesConfigMap(db string) string { return db + "-sides" }

// SidesPolicy is their NetworkPolicy.
func SidesPolicy(db string) string { return db + "-sides" }

// SidesJob does one step of a blue/green upgrade. It is named by the hash of which, so that another try is another Job.
func SidesJob(db, hash string) string { return db + "-sides-" + hash }
