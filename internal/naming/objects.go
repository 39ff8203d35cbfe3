package naming

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Names of a SampleDB's objects.
func StatefulSet(db string) string      { return db }
func ReadWriteService(db string) string { return db }
func ReadOnlyService(db string) string  { return db + "-ro" }
func HeadlessService(db string) string  { return db + "-instances" }
func ConfigMap(db string) string        { return db + "-config" }
func AuthoritySecret(db string) string  { return db + "-ca" }
func AppSecret(db string) string        { return db + "-app" }
func ServiceAccount(db string) string   { return db }
func Role(db string) string             { return db }
func Budget(db string) string           { return db }
func Lease(db string) string            { return db }
func NetworkPolicy(db string) string    { return db }
func BackupConfigMap(db string) string  { return db + "-backup" }
func BackupPolicy(db string) string     { return db + "-backup" }
func Archive(db string) string          { return db + "-archive" }
func RetentionJob(db string) string     { return db + "-retention" }
func CopyJob(db, hash string) string    { return db + "-copy-" + hash }
func RestoreConfigMap(db string) string { return db + "-restore" }
func RestorePolicy(db string) string    { return db + "-restore" }
func UpgradeConfigMap(db string) string { return db + "-upgrade" }
func UpgradePolicy(db string) string    { return db + "-upgrade" }

// Pool is the name of everything that the poolers of a SampleDB are made of.
func Pool(db string) string { return db + "-pool" }

// ReadPool is the same of those for clients that only read. They show the certificate of Pool.
func ReadPool(db string) string { return Pool(db) + "-ro" }

// PoolSelector selects the Pods of the poolers of a component: ComponentPooler, or ComponentReadPool.
func PoolSelector(db, component string) map[string]string {
	return map[string]string{LabelSampleDB: db, LabelComponent: component}
}

// PoolRevision is what the Secret NAME-pool with some content belongs to: it goes with that.
func PoolRevision(db, content string) string { return Pool(db) + "-" + content }

// ImageJob looks into the image as its registry has it now, NodeImageJob as some node has it.
func ImageJob(db string) string     { return db + "-image" }
func NodeImageJob(db string) string { return db + "-image-node" }

// PullJob has the node of an instance pull the image of an update, and looks into it there.
func PullJob(db string, ordinal int) string { return fmt.Sprintf("%s-pull-%d", db, ordinal) }

// FinishJob does what is left to do in the databases after a change of the image.
func FinishJob(db string) string { return db + "-finish" }

// AuthorityRevision is what the Secret NAME-ca with the authority of an epoch belongs to: it goes with that.
func AuthorityRevision(db, epoch string) string { return AuthoritySecret(db) + "-" + epoch }

// InitJob is named by the hash of what it does, so that a mended spec.init gets
// a new Job.
func InitJob(db, hash string) string { return db + "-init-" + hash }

// UpgradeJob upgrades the data to another major version, UpgradeCheckJob looks before whether that can be done. Both
// are named by the hash of what they work with, so that something that was mended gets new Jobs.
func UpgradeJob(db, hash string) string      { return db + "-upgrade-" + hash }
func UpgradeCheckJob(db, hash string) string { return db + "-upgrade-check-" + hash }

// RehearsalJob upgrades a copy of the data, which it restores from a backup.
func RehearsalJob(db, hash string) string { return db + "-rehearsal-" + hash }

// UpgradeBackup is the DatabaseBackup that is taken before an upgrade.
func UpgradeBackup(db, id string) string { return db + "-before-" + id }

// RestoreJob is named by the hash of what is restored, so that a mended spec.restoreFrom gets a new Job.
func RestoreJob(db, hash string) string { return db + "-restore-" + hash }

// Bring is the name of the Job of a DatabaseRestore, and of the ConfigMap with its settings.
func Bring(restore string) string { return restore + bringSuffix }

// BroughtBy is the DatabaseRestore of a Job's name.
func BroughtBy(job string) (restore string, ok bool) { return strings.CutSuffix(job, bringSuffix) }

const bringSuffix = "-bring"

// VerifyJob is the Job that verifies a DatabaseBackup, by the hash of whose and which request it is.
func VerifyJob(backup, hash string) string { return backup[:min(len(backup), 40)] + "-verify-" + hash }

// ArchivePath is the folder of a SampleDB's archive in its store (docs/archive.md). The UID
// tells it from that of another SampleDB of the same name.
func ArchivePath(namespace, db, uid string) string {
	return fmt.Sprintf("%s/%s-%s", namespace, db, uid[:min(len(uid), shortUID)])
}

// shortUID is how much of a UID is in names: enough to tell objects of the same name apart.
const shortUID = 8

// MajorArchivePath is the folder of the archive after an upgrade to another major version of PostgreSQL than the one
// that the SampleDB has begun with, whose folder is first. So WAL and backups of two major versions never mix.
func MajorArchivePath(first string, major int) string {
	return fmt.Sprintf("%s%s%d", first, majorMark, major)
}

// majorMark is in no name of the first folder after its last "-": the eight characters there are hexadecimal.
const majorMark = "-pg"

// FirstArchivePath is the folder of a SampleDB's archive that it has begun with, and the major version that is in the
// name of the given one, 0 where that is the first itself.
func FirstArchivePath(path string) (first string, major int) {
	i := strings.LastIndex(path, majorMark)
	if i < 0 {
		return path, 0
	}
	major, err := strconv.Atoi(path[i+len(majorMark):])
	if err != nil || major <= 0 {
		return path, 0
	}
	return path[:i], major
}

// OfArchivePath is whose archive is in a folder, by the folder's name alone: of the UID it has the first characters. It
// is not ok where no archive has that name.
func OfArchivePath(path string) (namespace, db, uid string, ok bool) {
	first, _ := FirstArchivePath(path)
	namespace, name, inOne := strings.Cut(first, "/")
	i := strings.LastIndex(name, "-")
	if !inOne || i < 0 {
		return "", "", "", false
	}
	db, uid = name[:i], name[i+1:]
	ok = IsOwner(namespace, db) && len(uid) == shortUID && strings.Trim(uid, "0123456789abcdef") == ""
	return namespace, db, uid, ok
}

// label is a name of a namespace, or of an object whose name is also a host's (RFC 1123, as Kubernetes has it).
var label = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)

// IsOwner says that a namespace and a SampleDB can have these names, which somebody may have written into a store.
func IsOwner(namespace, db string) bool { return label.MatchString(namespace) && label.MatchString(db) }

// ScheduledBackup is the name of the DatabaseBackup that is due at a time, so that it is made only once.
func ScheduledBackup(db string, due time.Time) string {
	return db + "-" + due.UTC().Format("20060102-150405")
}

// DatabaseRestore is the name of one that the command makes.
func DatabaseRestore(db string, at time.Time) string { return request(db, at) }

// longestRequest is how much of a SampleDB's name is in that of an object that may have 51 characters.
const longestRequest = 35

// request is the name of an object that the command makes, and that may have 51 characters.
func request(db string, at time.Time) string {
	return ScheduledBackup(strings.TrimRight(db[:min(len(db), longestRequest)], "-"), at)
}

// FinalBackup is the name of the last DatabaseBackup of a SampleDB, which is taken when it is deleted.
func FinalBackup(db, uid string) string { return db + "-final-" + uid[:min(len(uid), shortUID)] }

// VolumeSnapshot is the name of the VolumeSnapshot of a DatabaseBackup that was cut in the session of an id.
func VolumeSnapshot(backup, session string) string { return backup + "-" + strings.ToLower(session) }

// FindPod is the name of a Pod that looks for backups in a store.
func FindPod(unique string) string { return "toban-find-" + unique }

// Instance is the name of the Pod with this ordinal.
func Instance(db string, ordinal int) string { return fmt.Sprintf("%s-%d", db, ordinal) }

// Claim is the name of the PersistentVolumeClaim of the instance with this
// ordinal, as the StatefulSet controller makes it of VolumeData.
func Claim(db string, ordinal int) string { return ClaimOf(Instance(db, ordinal)) }

// ClaimOf is the volume claim of an instance by that one's name.
func ClaimOf(instance string) string { return VolumeData + "-" + instance }

// WALClaim is the claim of an instance's WAL volume, by ordinal and by the instance's name.
func WALClaim(db string, ordinal int) string { return WALClaimOf(Instance(db, ordinal)) }
func WALClaimOf(instance string) string      { return VolumeWAL + "-" + instance }

// Ordinal is the number at the end of an instance's or a claim's name.
func Ordinal(name string) (int, bool) {
	i := strings.LastIndexByte(name, '-')
	if i < 0 {
		return 0, false
	}
	n, err := strconv.Atoi(name[i+1:])
	return n, err == nil && n >= 0
}

// ClusterOf is the SampleDB of an instance.
func ClusterOf(instance string) string {
	return instance[:max(0, strings.LastIndexByte(instance, '-'))]
}

// InstanceHost is the DNS name of an instance, the same for as long as its
// SampleDB lives. It ends in the cluster's search domain, which no Pod has to know.
func InstanceHost(db, namespace string, ordinal int) string {
	return fmt.Sprintf("%s.%s.%s.svc", Instance(db, ordinal), HeadlessService(db), namespace)
}

// ServiceHost is the DNS name of a Service.
func ServiceHost(service, namespace string) string {
	return fmt.Sprintf("%s.%s.svc", service, namespace)
}

// TrustFolder is where a Pod has ca.crt of the Secret NAME-app, which the connection strings in it name. It is another
// one for each NAME, so that a Pod can use several databases.
func TrustFolder(name string) string { return "/var/run/toban/" + name }

// TrustFile is ca.crt in it.
func TrustFile(name string) string { return TrustFolder(name) + "/" + KeyCA }

// Slot is the name of the replication slot that the primary keeps for an
// instance. PostgreSQL allows lower-case letters, digits and '_'.
func Slot(instance string) string {
	return "toban_" + strings.ReplaceAll(instance, "-", "_")
}

// SlotArchive is the replication slot that keeps WAL until it is archived. Every instance has it, because any of them
// may be the next to archive.
const SlotArchive = "toban_archive"

// Common are the labels of every object of a SampleDB.
func Common(db string) map[string]string {
	return map[string]string{
		LabelManagedBy: ManagedBy,
		LabelName:      Application,
		LabelInstance:  db,
		LabelSampleDB:  db,
	}
}

// Lasting are the labels of what outlives its SampleDB, and so has no owner: Common without LabelInstance. Argo CD
// takes whatever bears that, with the name of an application, and has no owner, for a part of that application, and
// deletes it where it is not in the application's source (its documentation, "Resource Tracking", the method "label").
func Lasting(db string) map[string]string {
	out := Common(db)
	delete(out, LabelInstance)
	return out
}

// InstanceSelector selects the Pods of a SampleDB's instances.
func InstanceSelector(db string) map[string]string {
	return map[string]string{LabelSampleDB: db, LabelComponent: ComponentInstance}
}

// RoleSelector selects the instances with a role.
func RoleSelector(db, role string) map[string]string {
	s := InstanceSelector(db)
	s[LabelRole] = role
	return s
}
