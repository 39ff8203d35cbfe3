// Package former has the programs of a former major version of PostgreSQL collected in its image, so that they run in
// the image of another one: with their own C library, libraries and locales. It knows no Kubernetes.
package former
