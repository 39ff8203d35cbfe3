package desired

import (
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
)

// DrillSelector selects the Pods of a SampleDB's FaultDrills.
func DrillSelector(db string) map[string]string {
	return map[string]string{naming.LabelSampleDB: db, naming.LabelComponent: naming.ComponentDrill}
}

// DrillSchema is where the clients of a FaultDrill write: of no two the same.
func DrillSchema(drill *v1.FaultDrill) string { return "toban_drill_" + Hash(drill.UID) }

// AllowsDrills says that a SampleDB may be broken on purpose.
func AllowsDrills(db *v1.SampleDB) bool {
	return db.Annotations[naming.AnnotationFaultDrills] == naming.FaultDrillsAllowed
}

// ScheduledDrill is the FaultDrill that the schedule asks for at a time. It goes with its SampleDB.
func ScheduledDrill(db *v1.SampleDB, due time.Time, fault v1.FaultDrillFault) *v1.FaultDrill {
	object := meta(db, naming.ScheduledDrill(db.Name, due))
	object.Annotations = map[string]string{naming.AnnotationDue: due.UTC().Format(time.RFC3339)}
	instance := db.Spec.Drills.Instance
	if fault == v1.FaultReplayPaused { // a primary replays nothing
		instance = v1.DrillStandby
	}
	return &v1.FaultDrill{
		ObjectMeta: object,
		Spec: v1.FaultDrillSpec{
			SampleDB: db.Name, Fault: fault, Instance: instance, Objectives: db.Spec.Drills.Objectives,
			Duration:   metav1.Duration{Duration: 10 * time.Second},
			Observe:    metav1.Duration{Duration: 30 * time.Second},
			AbortAfter: metav1.Duration{Duration: time.Minute},
			Deadline:   metav1.Duration{Duration: drillDeadline},
		},
	}
}

// drillDeadline is how long a drill of the schedule may take, the wait for its SampleDB included. After that it would
// break something at another time than the user has chosen.
const drillDeadline = 30 * time.Minute

// DrillJob has the clients of a FaultDrill write, in one Pod that is not made anew: another one would have seen another
// outage. It ends by itself, or after a while.
func DrillJob(db *v1.SampleDB, settings Settings, drill *v1.FaultDrill, deadline time.Duration) *batchv1.Job {
	object := ordered(db, drill, "FaultDrill", naming.DrillJob(drill.Name), DrillSelector(db.Name))
	return workDrill.Within(deadline).Job(object, drillPod(db, settings, drill))
}

// drillPod has what an application has, and nothing else: the Secret NAME-app.
func drillPod(db *v1.SampleDB, settings Settings, drill *v1.FaultDrill) corev1.PodSpec {
	var hosts []string
	for _, m := range members(db, 0) {
		hosts = append(hosts, m.Host)
	}
	pod := auxiliaryPod(db, initUser)
	pod.RestartPolicy = corev1.RestartPolicyNever
	command := []string{
		naming.PathImageBinary, naming.VerbWork, "faultdrill",
		"--app", naming.PathApp,
		"--hosts", strings.Join(hosts, ","),
		"--schema", DrillSchema(drill),
		"--observe", drill.Spec.Observe.Duration.String(),
		"--abort-after", drill.Spec.AbortAfter.Duration.String(),
	}
	if drill.Spec.Has(v1.FaultReplayPaused) {
		command = append(command, "--standbys")
	}
	if query := drill.Spec.AbortWhen; query != "" {
		command = append(command, "--abort-when="+query)
	}
	pod.Containers = []corev1.Container{{
		Name:            naming.ContainerDrill,
		Image:           settings.Image,
		ImagePullPolicy: corev1.PullIfNotPresent,
		Command:         command,
		Ports: []corev1.ContainerPort{
			{Name: "probe", ContainerPort: naming.PortProbe, Protocol: corev1.ProtocolTCP},
		},
		ReadinessProbe:  probe("/readyz", 1, 1, 3),
		Resources:       requests("50m", "32Mi"),
		SecurityContext: containerSecurity(),
		VolumeMounts:    []corev1.VolumeMount{{Name: volumeApp, MountPath: naming.PathApp, ReadOnly: true}},
	}}
	pod.Volumes = []corev1.Volume{secretVolume(volumeApp, naming.AppSecret(db.Name))}
	return pod
}
