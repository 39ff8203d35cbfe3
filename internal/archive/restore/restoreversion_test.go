package restore

import (
	"errors"
	"strings"
	"testing"

	"toban.dev/internal/archive/format"
)

func TestABackupRunsWithItsOwnVersion(t *testing.T) {
	for _, c := range []struct {
		version string
		major   int
		refused bool
	}{{"17.6", 17, false}, {"17.6", 18, true}, {"18beta1", 18, false}, {"17.6", 0, false}, {"", 18, false}} {
		err := runsWith(format.Backup{ID: "b", ServerVersion: c.version}, c.major)
		var refused *VersionError
		if errors.As(err, &refused) != c.refused {
			t.Errorf("%q with %d: %v", c.version, c.major, err)
		}
		if c.refused && !strings.Contains(err.Error(), "version: 17") {
			t.Errorf("it does not say which version to use: %v", err)
		}
	}
}
