package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/protocol"
)

// InstanceChoice is which instance of a SampleDB a verb is about.
type InstanceChoice struct {
	// Name is that of the instance, "" for the one that the role says.
	Name string
	// Replica asks for a standby, else it is the primary.
	Replica bool
}

// Pick is the instance that is asked for. Who has which role is what the agents say by the labels of their Pods, which
// is newer than the status.
func (i InstanceChoice) Pick(db string, pods []corev1.Pod) (string, error) {
	if i.Name != "" {
		names := instanceNames(pods)
		if !slices.Contains(names, i.Name) {
			return "", fmt.Errorf("the SampleDB %s has no running instance %s: there are %s", db, i.Name,
				strings.Join(names, ", "))
		}
		return i.Name, nil
	}
	role := protocol.RolePrimary
	if i.Replica {
		role = protocol.RoleStandby
	}
	for _, pod := range pods {
		if pod.Labels[naming.LabelRole] == string(role) && pod.DeletionTimestamp == nil {
			return pod.Name, nil
		}
	}
	if i.Replica {
		return "", fmt.Errorf("the SampleDB %s has no standby that is ready", db)
	}
	return "", fmt.Errorf("the SampleDB %s has no primary now: kubectl toban status %s says why; "+
		"--instance connects to one of its instances", db, db)
}

func instanceNames(pods []corev1.Pod) (names []string) {
	for _, pod := range pods {
		names = append(names, pod.Name)
	}
	return names
}

// servingSide is the SampleDB that has the instances to which clients are led: while the second side of a blue/green
// upgrade serves, what is written on the first one would be lost. An instance that is named may be of either.
func servingSide(db *v1.SampleDB, choice InstanceChoice) string {
	green := naming.Green(db.Name)
	if choice.Name != "" && !strings.HasPrefix(choice.Name, green+"-") || !db.Status.Upgrade.GreenServes() {
		return db.Name
	}
	return green
}

// InstancePods are the Pods of the instances of a SampleDB, by their ordinals.
func (c *Cluster) InstancePods(ctx context.Context, api client.Reader, db string) ([]corev1.Pod, error) {
	var list corev1.PodList
	err := api.List(ctx, &list, client.InNamespace(c.Namespace), client.MatchingLabels(naming.InstanceSelector(db)))
	if err != nil {
		return nil, fmt.Errorf("list the Pods of the SampleDB %s: %w", db, err)
	}
	if len(list.Items) == 0 {
		return nil, errors.New("the SampleDB " + db + " has no Pods now: kubectl toban status " + db + " says why")
	}
	slices.SortFunc(list.Items, func(a, b corev1.Pod) int {
		left, _ := naming.Ordinal(a.Name)
		right, _ := naming.Ordinal(b.Name)
		return left - right
	})
	return list.Items, nil
}

// Server finds a SampleDB, and the Pod of one of its instances: of those that serve, where one is not named.
func (c *Cluster) Server(ctx context.Context, name string, choice InstanceChoice) (*v1.SampleDB, string, error) {
	api, db, err := c.Find(ctx, name)
	if err != nil {
		return nil, "", err
	}
	side := servingSide(db, choice)
	pods, err := c.InstancePods(ctx, api, side)
	if err != nil {
		return nil, "", err
	}
	pod, err := choice.Pick(side, pods)
	return db, pod, err
}
