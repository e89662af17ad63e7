package bootstrap

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
)

// server records requests and answers the list of nodes.
func server(t *testing.T, nodes string) (*Client, string, *[]string) {
	t.Helper()
	var seen []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		seen = append(seen, strings.TrimSpace(fmt.Sprintf("%s %s %s", r.Method, r.URL.Path, body)))
		if r.Method == http.MethodGet {
			fmt.Fprint(w, nodes)
		}
	}))
	t.Cleanup(s.Close)
	return &Client{http: s.Client()}, s.URL, &seen
}

const leases = "DELETE /apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"

func TestLeasesGoAndStalePortsAreCorrected(t *testing.T) {
	client, url, seen := server(t, `{"items": [
		{"metadata": {"name": "stale"}, "status": {"daemonEndpoints": {"kubeletEndpoint": {"Port": 1}}}},
		{"metadata": {"name": "right"}, "status": {"daemonEndpoints": {"kubeletEndpoint": {"Port": 2}}}},
		{"metadata": {"name": "fresh"}}]}`)
	if err := client.ReleaseNodes(t.Context(), url, 2); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"GET /api/v1/nodes", leases,
		`PATCH /api/v1/nodes/stale/status {"status":{"daemonEndpoints":{"kubeletEndpoint":{"Port":2}}}}`,
	}
	if !slices.Equal(*seen, want) {
		t.Errorf("%q", *seen)
	}
}

func TestACleanStartTouchesNothing(t *testing.T) {
	client, url, seen := server(t, `{"items": []}`)
	if err := client.ReleaseNodes(t.Context(), url, 2); err != nil || len(*seen) != 1 {
		t.Errorf("%v %q", err, *seen)
	}
}

func TestRefusalsAreErrors(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "not you\nsecond line", http.StatusForbidden)
	}))
	defer s.Close()
	err := (&Client{http: s.Client()}).GrantSimulator(t.Context(), s.URL, "someone")
	if err == nil || !strings.Contains(err.Error(), "403 Forbidden: not you") || strings.Contains(err.Error(), "second") {
		t.Errorf("%v", err)
	}
}
