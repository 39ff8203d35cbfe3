package naming

// Labels and annotations of a MyApp's objects.
const (
	// LabelMyApp is on every object of a MyApp, LabelComponent says which part of it a Pod is.
	LabelMyApp = "toban.dev/myapp"
	// LabelLeaderOf is set by the operator on the one Pod that leads.
	LabelLeaderOf = "toban.dev/leader-of"

	// AnnotationConfig on a Pod is the digest of the ConfigMaps that it has its environment from.
	AnnotationConfig = "toban.dev/config"
	// AnnotationConnection on a Pod tells which content of the database's Secret it has its environment from.
	AnnotationConnection = "toban.dev/connection"
	// AnnotationSecrets on a MyApp is handed on to its Pods: another text replaces them, one after the other. It is for
	// whoever knows that a Secret has changed, which the operator does not.
	AnnotationSecrets = "toban.dev/secrets" //nolint:gosec // a name, and nothing secret
	// AnnotationRetry on a MyApp asks for another attempt at an update that has failed, once for each value.
	AnnotationRetry = "toban.dev/retry"
	// AnnotationMigration on a Job says to which version it brings the schema, AnnotationRevision from
	// which revision of the MyApp.
	AnnotationMigration = "toban.dev/migration"
	AnnotationRevision  = "toban.dev/revision"
	// AnnotationTemplate on a Deployment and its Pods identifies what they are made from, so that a new Pod
	// is told from an old one.
	AnnotationTemplate = "toban.dev/template"

	ComponentApp     = "app"
	ComponentMigrate = "migrate"

	ContainerApp     = "app"
	ContainerMigrate = "migrate"

	// PortApp is the name of the application's port.
	PortApp = "http"

	// EnvImageFrom and EnvImageTo tell a migration from which version it goes to which.
	EnvImageFrom = "TOBAN_IMAGE_FROM"
	EnvImageTo   = "TOBAN_IMAGE_TO"

	// PathLeader is the folder in an application's Pod with the file FileLeader, which has the application's name in it
	// while the Pod leads, and is empty while it does not.
	PathLeader = "/etc/toban/leader"
	FileLeader = "leader-of"
)

// App is the name of a MyApp's Deployment, Service, budget, autoscaler and Ingress.
func App(app string) string { return app }

// LeaderService is the name of the Service that leads to the leader.
func LeaderService(app string) string { return app + "-leader" }

// DatabasePolicy is the NetworkPolicy that lets a MyApp's Pods reach its database.
func DatabasePolicy(app string) string { return app + "-to-database" }

// MigrationJob is named by the hash of what it runs, so that a mended migration gets a new Job.
func MigrationJob(app, hash string) string { return app + "-migrate-" + hash }

// MigrationBackup is the DatabaseBackup that is taken before a migration, by the hash of that.
func MigrationBackup(app, hash string) string { return app + "-before-" + hash }

// AppLabels are the labels of every object of a MyApp.
func AppLabels(app string) map[string]string {
	return map[string]string{
		LabelManagedBy: ManagedBy,
		LabelName:      app,
		LabelInstance:  app,
		LabelMyApp:     app,
	}
}

// AppSelector selects the Pods of a MyApp, and not those of its migrations.
func AppSelector(app string) map[string]string {
	return map[string]string{LabelMyApp: app, LabelComponent: ComponentApp}
}

// LeaderSelector selects the Pod that leads, by nothing that two Pods could have at once.
func LeaderSelector(app string) map[string]string {
	return map[string]string{LabelLeaderOf: app}
}
