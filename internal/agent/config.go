package agent

import (
	"encoding/json"
	"fmt"
	"os"
	"sync"

	"toban.dev/internal/ha/machine"
	"toban.dev/internal/protocol"
)

// configs has the config as last given.
type configs struct {
	mutex sync.Mutex
	last  protocol.Config
}

func (c *configs) get() protocol.Config {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.last
}

func (c *configs) set(config protocol.Config) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.last = config
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

// machineConfig is what of a config elections depend on. There may be a Kubernetes API.
func machineConfig(config protocol.Config, api bool) machine.Config {
	c := machine.Config{
		SystemIdentifier: config.SystemIdentifier, Async: config.Durability == protocol.DurabilityAsync,
		Witness: config.Witness, API: api,
	}
	for _, m := range config.Members {
		c.Members = append(c.Members, m.Name)
	}
	return c
}
