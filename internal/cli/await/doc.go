// Package await is how a verb waits for what it has asked for: it looks at an object again and again, tells how far it
// is, and goes on where the Kubernetes API is away for a moment. It knows no verb.
package await
