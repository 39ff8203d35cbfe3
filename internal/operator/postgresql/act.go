package postgresql

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pgv1 "toban.dev/api/postgresql/v1"
	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/apply"
	"toban.dev/internal/operator/desired"
	"toban.dev/internal/operator/pods"
	"toban.dev/internal/postgres/database"
	"toban.dev/internal/protocol"
)

// ask has the primary's agent make everything as declared, or drop it.
func (r *Reconciler) ask(ctx context.Context, s *scope, drop bool) answer {
	request := protocol.DatabaseRequest{Declared: s.declared(), Drop: drop}
	result, err := r.Databases.Database(ctx, s.seen.db.UID, s.seen.primary, s.seen.config, request)
	return answer{result, err}
}

// declared is the spec as the agent has to be told.
func (s *scope) declared() database.Declared {
	spec := s.pg.Spec
	d := database.Declared{
		Claimant:  s.pg.Namespace + "/" + s.pg.Name,
		Exclusive: spec.Server == nil,
		Adopt:     spec.Adopt || spec.Server == nil,
		Name:      spec.DB,
		Owner: database.Login{
			Name: string(spec.User), Password: s.password(spec.Password), ConnectionLimit: -1,
		},
		ConnectionLimit: limit(spec.ConnectionLimit),
		Extensions:      spec.Extensions,
	}
	for _, role := range spec.Roles {
		d.Roles = append(d.Roles, database.Role{
			Login: database.Login{
				Name: string(role.Name), Password: s.password(role.Password),
				ConnectionLimit: limit(role.ConnectionLimit),
			},
			Access:  database.Access(cmp.Or(role.Access, pgv1.AccessReadOnly)),
			Schemas: schemas(role),
		})
	}
	return d
}

// schemas are those of a role. The API server adds no default inside of a list, where it would be a difference from the
// manifest for ever.
func schemas(role pgv1.Role) []string {
	if role.Schemas == nil {
		return []string{"public"}
	}
	return role.Schemas
}

// password is what is known to be in a Secret, nil where nothing is.
func (s *scope) password(secret pgv1.SecretName) *string {
	found, there := s.found[string(secret)]
	if !there || found.Problem != "" {
		return nil
	}
	return &found.Password
}

// limit is a limit of connections as PostgreSQL has it.
func limit(n *int32) int32 {
	if n == nil {
		return -1
	}
	return *n
}

// applyServer writes the SampleDB of a server of its own.
func (r *Reconciler) applyServer(ctx context.Context, s *scope) error {
	have := &v1.SampleDB{}
	if err := r.Client.Get(ctx, client.ObjectKeyFromObject(s.pg), have); err != nil {
		if !apierrors.IsNotFound(err) {
			return fmt.Errorf("read the SampleDB %s: %w", s.pg.Name, err)
		}
		have = nil
	} else if !metav1.IsControlledBy(have, s.pg) {
		have = nil
	}
	return r.writer().Apply(ctx, ownerOf(s.pg), desired.Server(s.pg, have))
}

// applySecret writes the Secret for applications where its content is another one than was written last. The operator
// may create Secrets, and neither change nor delete any: one whose content is not true any more goes with the
// revision that it belongs to.
func (r *Reconciler) applySecret(ctx context.Context, s *scope) error {
	password := s.password(s.pg.Spec.Password)
	if password == nil {
		return nil
	}
	secret := desired.DatabaseSecret(s.pg, s.seen.db, *password, []byte(s.seen.clients))
	content, err := json.Marshal(secret.Data)
	if err != nil {
		return fmt.Errorf("encode the Secret %s: %w", secret.Name, err)
	}
	digest := r.Credentials.Digest(s.pg.UID, content)
	connection, err := r.connectionDigest(s.pg, secret)
	if err != nil {
		return err
	}
	if s.revision == digest {
		s.connection = connection
		return nil
	}
	revision, err := r.applyRevision(ctx, s, digest)
	if err != nil {
		return err
	}
	secret.OwnerReferences = []metav1.OwnerReference{
		*metav1.NewControllerRef(revision, appsv1.SchemeGroupVersion.WithKind("ControllerRevision")),
	}
	err = r.Client.Create(ctx, secret, client.FieldOwner(naming.FieldOwner))
	if apierrors.IsAlreadyExists(err) {
		s.secretInTheWay = true
		if s.now.Sub(revision.CreationTimestamp.Time) < patienceGone {
			return nil
		}
		// It may be this very one: an operator that ends between the Secret and the status does not know what it has
		// written, and may not read it. One of this revision goes with it, and is made anew.
		return r.deleteRevision(ctx, revision)
	}
	if err != nil {
		return apply.RefusedBy(err, "create", "Secret", secret.Name)
	}
	s.revision, s.connection = digest, connection
	return nil
}

// connectionDigest is of what an application has from its start: authorities are read from a file that is brought anew.
func (r *Reconciler) connectionDigest(pg *pgv1.PostgreSQL, secret *corev1.Secret) (string, error) {
	data := maps.Clone(secret.Data)
	delete(data, naming.KeyCA)
	content, err := json.Marshal(data)
	if err != nil {
		return "", fmt.Errorf("encode the Secret %s: %w", secret.Name, err)
	}
	return r.Credentials.Digest(pg.UID, content), nil
}

// applyRevision makes the revision that the Secret will belong to, and deletes the former ones.
func (r *Reconciler) applyRevision(ctx context.Context, s *scope, digest string) (*appsv1.ControllerRevision, error) {
	want := desired.SecretRevision(s.pg, digest)
	var all appsv1.ControllerRevisionList
	if err := r.Reader.List(ctx, &all, client.InNamespace(s.pg.Namespace),
		client.MatchingLabels{naming.LabelPostgreSQL: s.pg.Name}); err != nil {
		return nil, fmt.Errorf("list the revisions of the Secret: %w", err)
	}
	for i := range all.Items {
		have := &all.Items[i]
		switch {
		case !metav1.IsControlledBy(have, s.pg):
		case have.Name == want.Name && have.DeletionTimestamp == nil:
			return have, nil
		default:
			if err := r.deleteRevision(ctx, have); err != nil {
				return nil, err
			}
		}
	}
	if err := r.Client.Create(ctx, want, client.FieldOwner(naming.FieldOwner)); err != nil {
		return nil, apply.RefusedBy(err, "create", "ControllerRevision", want.Name)
	}
	return want, nil
}

func (r *Reconciler) deleteRevision(ctx context.Context, revision *appsv1.ControllerRevision) error {
	err := r.Client.Delete(ctx, revision, client.PropagationPolicy(metav1.DeletePropagationBackground))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete ControllerRevision %s, to which the Secret belongs: %w", revision.Name, err)
	}
	return nil
}

// labelPods says on the Pods of a server of its own which of them serve the application: those that are ready,
// while its database is there.
func (r *Reconciler) labelPods(ctx context.Context, s *scope, ready bool) error {
	for i := range s.seen.instances {
		pod := &s.seen.instances[i]
		want := ready && pods.Ready(pod)
		if pod.DeletionTimestamp != nil || want == (pod.Labels[naming.LabelAppReady] == naming.AppReady) {
			continue
		}
		changed := pod.DeepCopy()
		if delete(changed.Labels, naming.LabelAppReady); want {
			changed.Labels[naming.LabelAppReady] = naming.AppReady
		}
		err := r.Client.Patch(ctx, changed, client.MergeFrom(pod), client.FieldOwner(naming.FieldOwner))
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("label Pod %s: %w", pod.Name, err)
		}
	}
	return nil
}
