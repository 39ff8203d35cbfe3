// Package console is the web console of `kubectl toban console`: a server on the loopback of the user's machine,
// with the user's rights. Pure functions make views, which are JSON, from objects of the API. A feed has what is
// known of the cluster, by watches. A guard stands before the handlers. The page is in assets, without a build.
//
// What the verbs do is given to it (Verbs). It must not import internal/cli, which starts it.
package console
