package myapp

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	v1 "toban.dev/api/myapp/v1"
	"toban.dev/internal/naming"
)

// environment has what leads to the database and then the user's own variables, which may name those before
// them, as $(PGHOST), or take their place.
func environment(spec v1.MyAppSpec) []corev1.EnvVar {
	own := func(name string) bool {
		return slices.ContainsFunc(spec.Env, func(e corev1.EnvVar) bool { return e.Name == name })
	}
	var out []corev1.EnvVar
	for _, e := range connection(spec.Database) {
		if !own(e.Name) {
			out = append(out, e)
		}
	}
	return append(out, spec.Env...)
}

// connection is how libpq and those that want a URL find the database.
func connection(database *v1.DatabaseReference) []corev1.EnvVar {
	if database == nil {
		return nil
	}
	from := func(name, key string) corev1.EnvVar {
		return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: naming.AppSecret(database.Name)}, Key: key,
		}}}
	}
	host, uri := naming.KeyHost, naming.KeyURI
	if database.Pooler {
		host, uri = naming.KeyPoolHost, naming.KeyPoolURI
	}
	return []corev1.EnvVar{
		from("PGHOST", host),
		from("PGPORT", naming.KeyPort),
		from("PGUSER", naming.KeyUsername),
		from("PGPASSWORD", naming.KeyPassword),
		from("PGDATABASE", naming.KeyDatabase),
		{Name: "PGSSLMODE", Value: "verify-full"},
		{Name: "PGSSLROOTCERT", Value: naming.TrustFile(database.Name)},
		from("DATABASE_URL", uri),
	}
}

// direct is the database without its pooler: what migrations connect to, which also makes no other version of it.
func direct(database *v1.DatabaseReference) *v1.DatabaseReference {
	if database == nil {
		return nil
	}
	out := *database
	out.Pooler = false
	return &out
}

// sources are the objects whose keys become variables. They must be there: a Pod without them does not start.
func sources(config v1.ConfigSpec) []corev1.EnvFromSource {
	var out []corev1.EnvFromSource
	for _, name := range config.ConfigMaps {
		out = append(out, corev1.EnvFromSource{ConfigMapRef: &corev1.ConfigMapEnvSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: string(name)},
		}})
	}
	for _, name := range config.Secrets {
		out = append(out, corev1.EnvFromSource{SecretRef: &corev1.SecretEnvSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: string(name)},
		}})
	}
	return out
}
