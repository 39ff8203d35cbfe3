package naming

import (
	"fmt"
	"strings"
)

// readersSuffix is behind the name of a SampleDB in those of its readers' objects.
const readersSuffix = "-readers"

// VolumeReader is the name of a reader's volume in its Pod. Its claims begin with it, so none has the name of an
// instance's claim, whatever SampleDBs are called: the volume of an instance never becomes that of a reader, nor one
// of a reader that of an instance.
const VolumeReader = "reader"

// VolumeReaderWAL is that of a reader's WAL volume. No name of another claim begins with it, either.
const VolumeReaderWAL = "walreader"

// Readers is the name of the readers' StatefulSet, budget and autoscaler.
func Readers(db string) string { return db + readersSuffix }

// Reader is the name of the Pod of the reader with this ordinal.
func Reader(db string, ordinal int) string { return fmt.Sprintf("%s-%d", Readers(db), ordinal) }

// ReaderClaim is the name of the volume claim of a reader.
func ReaderClaim(db string, ordinal int) string { return VolumeReader + "-" + Reader(db, ordinal) }

// ReaderWALClaim is the name of the claim of a reader's WAL volume.
func ReaderWALClaim(db string, ordinal int) string {
	return VolumeReaderWAL + "-" + Reader(db, ordinal)
}

// IsReader says that a Pod of a SampleDB is a reader, by its name: so no config that is late or wrong makes an
// instance of it.
func IsReader(db, pod string) bool {
	_, numbered := Ordinal(pod)
	return numbered && pod[:max(0, strings.LastIndexByte(pod, '-'))] == Readers(db)
}

// ReaderSelector selects the Pods of a SampleDB's readers.
func ReaderSelector(db string) map[string]string {
	return map[string]string{LabelSampleDB: db, LabelComponent: ComponentReader}
}

// AnyStandby selects the standbys, readers or not.
func AnyStandby(db, role string) map[string]string {
	return map[string]string{LabelSampleDB: db, LabelRole: role}
}
