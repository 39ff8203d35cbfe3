package pods

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"toban.dev/internal/naming"
	"toban.dev/internal/protocol"
)

// waiting is a container that waits for a reason, and how it has ended before, nil for not at all.
func waiting(reason, message string, before *corev1.ContainerStateTerminated) corev1.ContainerStatus {
	return corev1.ContainerStatus{
		Name: "postgres", Image: "postgres:17",
		State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason,
			Message: message}},
		LastTerminationState: corev1.ContainerState{Terminated: before},
	}
}

func TestWhatKeepsAPodFromRunning(t *testing.T) {
	running := corev1.ContainerStatus{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}
	scheduled := func(status corev1.ConditionStatus, reason string) corev1.PodStatus {
		return corev1.PodStatus{Conditions: []corev1.PodCondition{
			{Type: corev1.PodReady, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable},
			{Type: corev1.PodScheduled, Status: status, Reason: reason, Message: "0/3 nodes are available"},
		}}
	}
	containers := func(all ...corev1.ContainerStatus) corev1.PodStatus {
		return corev1.PodStatus{ContainerStatuses: all}
	}
	full := &corev1.ContainerStateTerminated{ExitCode: 2, Message: " the volume is full\n"}
	for name, c := range map[string]struct {
		status corev1.PodStatus
		cause  Cause // "" for no trouble
		words  string
	}{
		"it is new":       {corev1.PodStatus{}, "", ""},
		"it runs":         {containers(running), "", ""},
		"it is scheduled": {scheduled(corev1.ConditionTrue, ""), "", ""},
		"no node takes it": {scheduled(corev1.ConditionFalse, corev1.PodReasonUnschedulable), Unschedulable,
			"db-0 fits on no node: 0/3"},
		"it waits for a gate": {scheduled(corev1.ConditionFalse, corev1.PodReasonSchedulingGated), "", ""},
		"it is made":          {containers(waiting("ContainerCreating", "", nil)), "", ""},
		"no such image": {containers(waiting("ImagePullBackOff", "not found", nil)), Image,
			"postgres:17 can't be pulled for db-0: not found"},
		"no such image, without words": {containers(waiting("ErrImagePull", "", nil)), Image, ": ErrImagePull"},
		"an image that can't run": {containers(waiting("RunContainerError", "exec format error", nil)), Image,
			"can't be run as db-0: exec format error"},
		"a Secret is missing": {containers(waiting("CreateContainerConfigError", `secret "s" not found`, nil)), Config,
			`db-0 can't be started: secret "s" not found`},
		"it goes on again and again": {containers(waiting("CrashLoopBackOff", "", nil)), "", ""},
		"it has ended once": {containers(corev1.ContainerStatus{State: corev1.ContainerState{Terminated: full}}), "",
			""},
		"it ends again and again": {containers(waiting("CrashLoopBackOff", "back-off", full)), Crashing,
			"container postgres of db-0 ends again and again: the volume is full"},
		"it ends again and again without a word": {
			containers(waiting("CrashLoopBackOff", "", &corev1.ContainerStateTerminated{ExitCode: 137})), Crashing,
			"exit code 137, see kubectl logs db-0 -c postgres --previous"},
		"an init container": {corev1.PodStatus{
			InitContainerStatuses: []corev1.ContainerStatus{waiting("ErrImagePull", "no", nil)},
			ContainerStatuses:     []corev1.ContainerStatus{waiting("PodInitializing", "", nil)},
		}, Image, "no"},
		"the second container": {containers(running, waiting("ErrImagePull", "no", nil)), Image, "no"},
	} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "db-0"}, Status: c.status}
		got := TroubleOf(pod)
		switch {
		case got == nil && c.cause != "":
			t.Errorf("%s: nothing is said", name)
		case got != nil && (got.Cause != c.cause || !strings.Contains(got.Message, c.words)):
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestSentence(t *testing.T) {
	for want, p := range map[string]protocol.BackupProgress{
		"copies":       {Step: "copies", Done: 3},
		"copies: 50 %": {Step: "copies", Done: 3, Total: 6},
		"copies: 0 %":  {Step: "copies", Total: 6},
	} {
		if got := Sentence(p); got != want {
			t.Errorf("%+v is %q, want %q", p, got, want)
		}
	}
}

// config is a Reader that has the configuration of one SampleDB, and nothing else.
type config struct {
	client.Reader
	key types.NamespacedName
}

func (c config) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	if key != c.key {
		return errors.New("there is none")
	}
	if cm, is := into.(*corev1.ConfigMap); is {
		cm.Data = map[string]string{naming.KeyConfig: `{"authority": "pem"}`}
	}
	return nil
}

// asker is a Pod that says how far it is.
type asker struct{ asked []string }

func (a *asker) Progress(
	_ context.Context, identity, host string, c protocol.Config,
) (protocol.BackupProgress, error) {
	a.asked = append(a.asked, identity+" at "+host+" by "+c.Authority)
	return protocol.BackupProgress{Step: "copies"}, nil
}

func TestWhichPodsAreAsked(t *testing.T) {
	for name, c := range map[string]struct {
		status corev1.PodStatus
		of     string
		want   bool
	}{
		"one that runs":                  {corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "10.0.0.1"}, "db", true},
		"one whose init container works": {corev1.PodStatus{Phase: corev1.PodPending, PodIP: "10.0.0.1"}, "db", true},
		"one without an address":         {corev1.PodStatus{Phase: corev1.PodPending}, "db", false},
		"one that has ended": {corev1.PodStatus{Phase: corev1.PodSucceeded, PodIP: "10.0.0.1"}, "db",
			false},
		"one that has failed": {corev1.PodStatus{Phase: corev1.PodFailed, PodIP: "10.0.0.1"}, "db", false},
		"one whose SampleDB has no config": {corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "10.0.0.1"}, "other",
			false},
	} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "n",
			Labels: map[string]string{naming.LabelSampleDB: c.of}}, Status: c.status}
		reader := config{key: types.NamespacedName{Namespace: "n", Name: naming.ConfigMap("db")}}
		a := &asker{}
		got := Ask(t.Context(), reader, a, "backup", pod)
		if (got != nil) != c.want || (len(a.asked) > 0) != c.want {
			t.Errorf("%s: %v, asked %q", name, got, a.asked)
		}
		if c.want && a.asked[0] != "backup at 10.0.0.1 by pem" {
			t.Errorf("%s: asked %q", name, a.asked)
		}
	}
}

func TestReadyAndEnded(t *testing.T) {
	ready := func(status corev1.ConditionStatus) *corev1.Pod {
		return &corev1.Pod{Status: corev1.PodStatus{Conditions: []corev1.PodCondition{
			{Type: corev1.ContainersReady, Status: corev1.ConditionTrue}, {Type: corev1.PodReady, Status: status}}}}
	}
	if !Ready(ready(corev1.ConditionTrue)) || Ready(ready(corev1.ConditionFalse)) ||
		Ready(ready(corev1.ConditionUnknown)) || Ready(&corev1.Pod{}) {
		t.Error("a Pod is ready only where the kubelet says so")
	}
	for phase, want := range map[corev1.PodPhase]bool{
		corev1.PodPending: false, corev1.PodRunning: false, corev1.PodUnknown: false,
		corev1.PodSucceeded: true, corev1.PodFailed: true,
	} {
		if got := Ended(&corev1.Pod{Status: corev1.PodStatus{Phase: phase}}); got != want {
			t.Errorf("%s: %v", phase, got)
		}
	}
}

func TestWhatHasBecomeOfAPodIsNotKnown(t *testing.T) {
	now := time.Unix(1e9, 0)
	running := corev1.ContainerStatus{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}
	starting := corev1.ContainerStatus{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{}}}
	with := func(phase corev1.PodPhase, container corev1.ContainerStatus, more ...corev1.PodCondition) *corev1.Pod {
		return &corev1.Pod{Spec: corev1.PodSpec{NodeName: "n1"}, Status: corev1.PodStatus{
			Phase: phase, Conditions: more, ContainerStatuses: []corev1.ContainerStatus{container},
		}}
	}
	unready := corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionFalse}
	evicted := corev1.PodCondition{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Message: "evicted"}
	deleted := func(at time.Time) *corev1.Pod {
		pod := with(corev1.PodRunning, running)
		pod.DeletionTimestamp = &metav1.Time{Time: at}
		return pod
	}
	for name, c := range map[string]struct {
		pod  *corev1.Pod
		want string
	}{
		"it runs":                         {with(corev1.PodRunning, running), ""},
		"it starts":                       {with(corev1.PodPending, starting, unready), ""},
		"it is new":                       {&corev1.Pod{}, ""},
		"its node is lost":                {with(corev1.PodRunning, running, unready), "node n1 does not answer"},
		"it is evicted":                   {with(corev1.PodRunning, running, evicted), "evicted"},
		"it was evicted, and has ended":   {with(corev1.PodFailed, running, unready, evicted), ""},
		"it is deleted":                   {deleted(now.Add(time.Second)), ""},
		"it is deleted, and has not gone": {deleted(now.Add(-time.Second)), "node n1 does not say that it has ended"},
	} {
		if got := LostOf(c.pod, now); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestWhatAPodWaitsForThatIsResized(t *testing.T) {
	now := time.Unix(1e9, 0)
	with := func(kind corev1.PodConditionType, reason string, age time.Duration) *corev1.Pod {
		return &corev1.Pod{Status: corev1.PodStatus{Conditions: []corev1.PodCondition{
			{Type: corev1.PodReady, Status: corev1.ConditionTrue},
			{Type: kind, Status: corev1.ConditionTrue, Reason: reason, Message: "why",
				LastTransitionTime: metav1.NewTime(now.Add(-age))},
		}}}
	}
	unseen := &corev1.Pod{Status: corev1.PodStatus{ObservedGeneration: 1}}
	unseen.Generation = 2
	for name, c := range map[string]struct {
		pod     *corev1.Pod
		waits   string
		refused bool
	}{
		"nothing":              {&corev1.Pod{}, "", false},
		"it is under way":      {with(corev1.PodResizeInProgress, "", time.Hour), "resources why", false},
		"it fails":             {with(corev1.PodResizeInProgress, "Error", time.Minute), "resources why", false},
		"it fails for long":    {with(corev1.PodResizeInProgress, "Error", time.Hour), "resources why", true},
		"the node is full":     {with(corev1.PodResizePending, "Deferred", time.Minute), "(Deferred: why)", false},
		"it has long been so":  {with(corev1.PodResizePending, "Deferred", time.Hour), "(Deferred: why)", true},
		"it is too small":      {with(corev1.PodResizePending, "Infeasible", 0), "(Infeasible: why)", true},
		"nobody has looked":    {unseen, "has not seen", false},
		"it does not say that": {&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Generation: 2}}, "", false},
	} {
		waits, refused := Resizing(c.pod, now)
		if (waits == "") != (c.waits == "") || !strings.Contains(waits, c.waits) || refused != c.refused {
			t.Errorf("%s: it waits for %q, %v", name, waits, refused)
		}
	}
}

func TestNoPodHasNoTrouble(t *testing.T) {
	if got := TroubleOf(nil); got != nil {
		t.Errorf("%+v", got)
	}
}

func TestWhichGatesAPodWaitsFor(t *testing.T) {
	gated := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "db-0"}}
	if Gates(nil) != "" || Gates(gated) != "" {
		t.Error("where there is none")
	}
	gated.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "a.example/one"}, {Name: "b"}}
	const want = "db-0 waits until whoever has set its scheduling gates removes them: a.example/one, b"
	if got := Gates(gated); got != want {
		t.Errorf("it says %q", got)
	}
}
