// Package servers has the verbs for servers that run: switchover, restart, rebuild, stop and start.
package servers
