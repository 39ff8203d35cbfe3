package naming

import (
	"fmt"
	"hash/fnv"
	"strings"
	"time"
)

const (
	// AnnotationFaultDrills on a SampleDB or a MyApp, with the value FaultDrillsAllowed, lets FaultDrills break it, or
	// kill its leader.
	AnnotationFaultDrills = "toban.dev/fault-drills"
	// FaultDrillsAllowed is the one value of it that lets.
	FaultDrillsAllowed = "allowed"
	// ComponentDrill is that of the Job of a FaultDrill.
	ComponentDrill = "drill"
	// ContainerDrill is the container in its Pod.
	ContainerDrill = "drill"
)

const drillSuffix = "-drill"

// DrillJob is the name of the Job of a FaultDrill.
func DrillJob(drill string) string { return drill + drillSuffix }

// DrilledBy is the FaultDrill of a Job's name.
func DrilledBy(job string) (drill string, ok bool) { return strings.CutSuffix(job, drillSuffix) }

// FaultDrill is the name of one that the command makes.
func FaultDrill(db string, at time.Time) string { return request(db, at) }

// ScheduledDrill is the name of one that the schedule of a SampleDB asks for. Those of no two SampleDBs are the same,
// though a long name does not fit into it.
func ScheduledDrill(db string, due time.Time) string {
	return FaultDrill(fitted(db, longestRequest), due)
}

// fitted is a name of no more than so many characters: the name itself, or its beginning and a number, by which names
// that begin alike differ.
func fitted(name string, most int) string {
	if len(name) <= most {
		return name
	}
	h := fnv.New32a()
	h.Write([]byte(name))
	return fmt.Sprintf("%s-%08x", strings.TrimRight(name[:most-9], "-"), h.Sum32())
}
