package postgres

import (
	"fmt"
	"os/user"
)

// osUserName is the operating system's user that the server runs as. PostgreSQL
// needs it in the image's passwd file, and so does peer authentication.
func osUserName() (string, error) {
	current, err := user.Current()
	if err != nil {
		return "", fmt.Errorf("the user that this container runs as has no entry in its passwd file: %w", err)
	}
	return current.Username, nil
}
