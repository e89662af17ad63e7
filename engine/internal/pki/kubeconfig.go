package pki

import (
	"encoding/base64"
	"fmt"
	"os"
)

// Kubeconfig returns a client configuration for user with all certificates inside, so that it works wherever it is copied.
func (a *Authority) Kubeconfig(user, server string) ([]byte, error) {
	var encoded [3]string
	for i, name := range []string{"ca.crt", user + ".crt", user + ".key"} {
		content, err := os.ReadFile(a.Path(name))
		if err != nil {
			return nil, err
		}
		encoded[i] = base64.StdEncoding.EncodeToString(content)
	}
	return fmt.Appendf(nil, `apiVersion: v1
kind: Config
clusters:
- name: podwarden-engine
  cluster:
    server: %s
    certificate-authority-data: %s
users:
- name: %s
  user:
    client-certificate-data: %s
    client-key-data: %s
contexts:
- name: podwarden-engine
  context:
    cluster: podwarden-engine
    user: %s
current-context: podwarden-engine
`, server, encoded[0], user, encoded[1], encoded[2], user), nil
}
