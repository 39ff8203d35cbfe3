package desired

import (
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/protocol"
)

// AuthoritySecret is NAME-ca: the SampleDB's own authority that issues certificates, certificate and key in PEM. Only
// Pods of ours mount it. It belongs to its revision.
func AuthoritySecret(db *v1.SampleDB, revision *appsv1.ControllerRevision, cert, key []byte) *corev1.Secret {
	data := map[string][]byte{naming.KeyCA: cert, naming.KeyCAKey: key}
	return secretOf(db, revision, naming.AuthoritySecret(db.Name), corev1.SecretTypeOpaque, data)
}

// AuthorityRevision is what NAME-ca with the authority of an epoch belongs to, as NAME-app belongs to AppRevision.
func AuthorityRevision(db *v1.SampleDB, epoch int64) *appsv1.ControllerRevision {
	return secretRevision(db, naming.AuthoritySecret(db.Name),
		naming.AuthorityRevision(db.Name, strconv.FormatInt(epoch, 10)), epoch)
}

// secretOf is a Secret that belongs to its revision.
func secretOf(
	db *v1.SampleDB, revision *appsv1.ControllerRevision, name string, kind corev1.SecretType, data map[string][]byte,
) *corev1.Secret {
	secret := &corev1.Secret{ObjectMeta: meta(db, name), Type: kind, Data: data}
	secret.OwnerReferences = ofRevision(revision)
	return secret
}

// ofRevision is the owner of what goes with its revision.
func ofRevision(revision *appsv1.ControllerRevision) []metav1.OwnerReference {
	return []metav1.OwnerReference{
		*metav1.NewControllerRef(revision, appsv1.SchemeGroupVersion.WithKind("ControllerRevision")),
	}
}

// secretRevision is the revision of a Secret, with the epoch of what is in it.
func secretRevision(db *v1.SampleDB, secret, name string, epoch int64) *appsv1.ControllerRevision {
	return &appsv1.ControllerRevision{
		ObjectMeta: meta(db, name),
		Data:       runtime.RawExtension{Raw: fmt.Appendf(nil, `{"secret":%q}`, secret)},
		Revision:   epoch + 1,
	}
}

// AppSecret is NAME-app: all that an application needs to connect. It belongs to its revision.
func AppSecret(db *v1.SampleDB, revision *appsv1.ControllerRevision, password string, ca []byte) *corev1.Secret {
	spec := initSpec(db)
	data := connection(db, login{db.Name, spec.Database, spec.Owner, password}, ca)
	return secretOf(db, revision, naming.AppSecret(db.Name), corev1.SecretTypeOpaque, data)
}

// AppRevision is what NAME-app belongs to with the password of an epoch, with the SampleDB's authorities of some epochs
// ("" is the first one alone), with those of users' certificates, which trust identifies ("" for none), and with the
// hosts of so many instances (0 is one of an earlier release, which names none). The operator may create Secrets but
// not change or delete any: a Secret with something former goes with its revision.
func AppRevision(db *v1.SampleDB, epoch int64, authorities, trust string, hosts int) *appsv1.ControllerRevision {
	content := strconv.FormatInt(epoch, 10)
	if authorities != "" {
		content += "-ca-" + authorities
	}
	if trust != "" {
		content += "-" + trust
	}
	if db.Spec.Pooler != nil {
		content += "-pool"
		if db.Spec.Pooler.ReadOnly != nil {
			content += "-ro"
		}
	}
	if hosts > 0 {
		content += "-of-" + strconv.Itoa(hosts)
	}
	return secretRevision(db, naming.AppSecret(db.Name), naming.AppRevision(db.Name, content), epoch)
}

// login is who connects to which database, by the Secret NAME-app of which name.
type login struct{ name, database, user, password string }

// connection is all that an application needs to connect to a SampleDB's primary, also through its pooler, by the hosts
// of all instances, or to its standbys.
func connection(db *v1.SampleDB, l login, ca []byte) map[string][]byte {
	host := naming.ServiceHost(naming.ReadWriteService(db.Name), db.Namespace)
	reads := naming.ServiceHost(naming.ReadOnlyService(db.Name), db.Namespace)
	port := strconv.Itoa(naming.PortPostgreSQL)
	hosts := make([]string, Instances(db))
	for i := range hosts {
		hosts[i] = naming.InstanceHost(db.Name, db.Namespace, i)
	}
	out := map[string][]byte{
		naming.KeyUsername: []byte(l.user),
		naming.KeyPassword: []byte(l.password),
		naming.KeyDatabase: []byte(l.database),
		naming.KeyHost:     []byte(host),
		naming.KeyPort:     []byte(port),
		naming.KeyURI:      l.uri(host),
		naming.KeyJDBC:     append(l.jdbc(host), jdbcPrimary...),
		// libpq, pgx and psycopg know the one parameter, PostgreSQL's JDBC driver the other. Where one host is enough,
		// the former is left out: some drivers that take one host only refuse what they do not know.
		naming.KeyHostsURI:  append(l.uri(hosts...), "&target_session_attrs=primary"...),
		naming.KeyHostsJDBC: append(l.jdbc(hosts...), jdbcPrimary...),
		naming.KeyReadURI:   l.uri(reads),
		naming.KeyReadJDBC:  l.jdbc(reads),
		naming.KeyPgpass: fmt.Appendf(nil, "%s:%s:%s:%s:%s\n",
			host, port, pgpass(l.database), pgpass(l.user), pgpass(l.password)),
		naming.KeyCA: ca,
	}
	for _, p := range Pools(db) {
		pool := naming.ServiceHost(p.Name, db.Namespace)
		if p.Reads {
			out[naming.KeyReadPoolURI], out[naming.KeyReadPoolJDBC] = l.uri(pool), l.jdbc(pool)
			continue
		}
		out[naming.KeyPoolHost] = []byte(pool)
		out[naming.KeyPoolURI], out[naming.KeyPoolJDBC] = l.uri(pool), l.jdbc(pool)
	}
	return out
}

// uri is a connection string of libpq, jdbc one of PostgreSQL's JDBC driver.
func (l login) uri(hosts ...string) []byte {
	return fmt.Appendf(nil, "postgresql://%s:%s@%s/%s?%s", escape(l.user), escape(l.password), withPorts(hosts),
		escape(l.database), l.verified())
}

func (l login) jdbc(hosts ...string) []byte {
	return fmt.Appendf(nil, "jdbc:postgresql://%s/%s?user=%s&password=%s&%s", withPorts(hosts),
		escape(l.database), escape(l.user), escape(l.password), l.verified())
}

// jdbcPrimary has PostgreSQL's JDBC driver stay with no standby, and look again after a second who the primary is: by
// itself it remembers for ten that a host is none.
const jdbcPrimary = "&targetServerType=primary&hostRecheckSeconds=1"

func withPorts(hosts []string) string {
	out := make([]string, len(hosts))
	for i, host := range hosts {
		out[i] = net.JoinHostPort(host, strconv.Itoa(naming.PortPostgreSQL))
	}
	return strings.Join(out, ",")
}

// verified has a client know the server by its name and its certificate.
func (l login) verified() string {
	return "sslmode=verify-full&sslrootcert=" + naming.TrustFile(l.name)
}

// escape writes a text so that it may stand anywhere in a URI. A space is %20:
// libpq does not read '+' as one.
func escape(s string) string { return strings.ReplaceAll(url.QueryEscape(s), "+", "%20") }

// pgpass writes a field of a password file: ':' and '\' have a '\' before them.
func pgpass(s string) string { return strings.NewReplacer(`\`, `\\`, `:`, `\:`).Replace(s) }

const volumeCertificate = "certificate"

// ownNames are the names in spec.tls.
func ownNames(db *v1.SampleDB) []string {
	var out []string
	for _, name := range db.Spec.TLS.Names {
		out = append(out, string(name))
	}
	return out
}

// certificate is what spec.tls wants the servers to show, nil for one of their own authority. What is in NAME-app must
// be among its names. docs/security.md lists them; those of the instances the agents know themselves.
func certificate(db *v1.SampleDB) *protocol.Certificate {
	if db.Spec.TLS.SecretName == "" {
		return nil
	}
	return &protocol.Certificate{
		Secret: db.Spec.TLS.SecretName,
		Names: append([]string{
			naming.ServiceHost(naming.ReadWriteService(db.Name), db.Namespace),
			naming.ServiceHost(naming.ReadOnlyService(db.Name), db.Namespace),
		}, ownNames(db)...),
	}
}

// certificateVolumes mount the user's Secret with a certificate. One that is missing keeps no Pod from starting: the
// server shows a certificate of its own then, and the agent says why.
func certificateVolumes(db *v1.SampleDB) ([]corev1.Volume, []corev1.VolumeMount) {
	if db.Spec.TLS.SecretName == "" {
		return nil, nil
	}
	volume := optionalSecret(volumeCertificate, db.Spec.TLS.SecretName)
	for _, key := range []string{naming.KeyTLSCertificate, naming.KeyTLSKey, naming.KeyCA} {
		volume.Secret.Items = append(volume.Secret.Items, corev1.KeyToPath{Key: key, Path: key})
	}
	// By its name the agent knows whether it has the one that is asked for now.
	path := naming.PathCertificate + "/" + db.Spec.TLS.SecretName
	return []corev1.Volume{volume}, []corev1.VolumeMount{{Name: volumeCertificate, MountPath: path, ReadOnly: true}}
}
