#!/usr/bin/env bash
# Runs stories in which the namespace has an operator of its own (config/install-namespaced.yaml), with no right
# elsewhere: each kind, and each thing that an operator needs a right for. One at a time; hack/namespaced.sh TestChanges
# is one of them. They need the cluster of make up. Stories of what is left of a SampleDB or a PostgreSQL that is
# deleted are not among them: such an operator can't see whether the kind goes too, so it keeps the data
# (TestNamespacedInstall).
set -euo pipefail
cd "$(dirname "$0")/.."

stories=${1:-$(paste -sd'|' <<'END'
TestAMajorUpgrade
TestADatabaseIsStoppedAndStarted
TestALostVolume
TestAnApplicationWithItsDatabase
TestBackupOnAVolumeOfItsOwn
TestChanges
TestLongBlueGreenCancelled
TestDailyUse
TestOneTableComesBack
TestReaders
TestScale
TestSwitchoverAndRotation
TestLongVolumesGrowByThemselves
END
)}
TOBAN_E2E_NAMESPACED=yes exec hack/e2e.sh -parallel 1 -run "^($stories)\$"
