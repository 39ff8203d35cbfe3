package agent

import (
	"encoding/json"
	"fmt"
	"os"
	"sync"

	"toban.dev/internal/ha/machine"
	"toban.dev/internal/naming"
	"toban.dev/internal/protocol"
)

// configs has the config as last given, as far as it is for this instance.
type configs struct {
	self  string
	mutex sync.Mutex
	last  protocol.Config
}

// forInstance is the part of a config that is for an instance: a reader neither archives nor asks the witness.
func forInstance(config protocol.Config, self string) protocol.Config {
	if naming.IsReader(config.Cluster, self) {
		config.Archive, config.Witness = nil, ""
	}
	return config
}

func (c *configs) get() protocol.Config {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.last
}

func (c *configs) set(config protocol.Config) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.last = forInstance(config, c.self)
}

func readConfig(path string) (protocol.Config, error) {
	var config protocol.Config
	text, err := os.ReadFile(path)
	if err != nil {
		return config, fmt.Errorf("read the agent's config: %w", err)
	}
	if err := json.Unmarshal(text, &config); err != nil {
		return config, fmt.Errorf("understand the agent's config %s: %w", path, err)
	}
	return config, nil
}

// machineConfig is the part of a config that the elections of an instance depend on. There may be a Kubernetes API.
func machineConfig(config protocol.Config, self string, api bool) machine.Config {
	reader := naming.IsReader(config.Cluster, self)
	c := machine.Config{
		SystemIdentifier: config.SystemIdentifier, Async: config.Durability == protocol.DurabilityAsync,
		Witness: config.Witness, API: api && !reader, Preferred: config.Preferred, Reader: reader,
	}
	for _, m := range config.Members {
		c.Members = append(c.Members, m.Name)
	}
	return c
}
