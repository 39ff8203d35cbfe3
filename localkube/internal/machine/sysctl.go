package machine

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// changed are the settings of the kernel that a kubelet sets for the whole
// machine when it starts.
var changed = []string{
	"vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops",
	"kernel/keys/root_maxkeys", "kernel/keys/root_maxbytes",
}

// SaveSettings notes the settings in file, unless they have been: what is found
// later is the kubelets' doing.
func SaveSettings(file string) error {
	if _, err := os.Stat(file); err == nil {
		return nil
	}
	settings := map[string]string{}
	for _, name := range changed {
		if value, err := os.ReadFile(filepath.Join("/proc/sys", name)); err == nil {
			settings[name] = strings.TrimSpace(string(value))
		}
	}
	data, err := json.MarshalIndent(settings, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(file+".new", data, 0o600); err != nil {
		return fmt.Errorf("note the kernel's settings: %w", err)
	}
	return os.Rename(file+".new", file)
}

// RestoreSettings sets them back to what the file says, if there is one.
func RestoreSettings(file string) error {
	data, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the kernel's former settings: %w", err)
	}
	var settings map[string]string
	if err := json.Unmarshal(data, &settings); err != nil {
		return fmt.Errorf("read the kernel's former settings in %s: %w", file, err)
	}
	var errs []error
	for _, name := range changed {
		if value, known := settings[name]; known {
			errs = append(errs, os.WriteFile(filepath.Join("/proc/sys", name), []byte(value), 0o600))
		}
	}
	return errors.Join(errs...)
}
