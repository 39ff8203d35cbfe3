package desired

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/protocol"
)

// What the tests of annexes share with those of this package: the golden files are in one place, and have all objects
// of a SampleDB.
var (
	TestSettings, TestFull, TestInS3      = settings, full, inS3
	TestLongest, TestWhole, TestCheckName = longest, whole, checkName
	UpgradeObjects                        func(*testing.T, *v1.SampleDB, protocol.Config) []client.Object
	// SidesObjects are those of a blue/green upgrade, without those of the two SampleDBs.
	SidesObjects func(*testing.T) []client.Object
)
