package bootstrap

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"podwarden.io/engine/internal/launch"
)

const simulatorName = "podwarden-simulator"

type object map[string]any

type rule struct {
	APIGroups []string `json:"apiGroups"`
	Resources []string `json:"resources"`
	Verbs     []string `json:"verbs"`
}

// simulatorRules are what a kubelet may do, for all nodes at once: kwok plays them all with one certificate.
var simulatorRules = []rule{
	{[]string{""}, []string{"nodes"}, []string{"get", "list", "watch"}},
	{[]string{""}, []string{"nodes/status", "pods/status"}, []string{"patch", "update"}},
	{[]string{""}, []string{"pods"}, []string{"get", "list", "watch", "patch", "delete"}},
	{[]string{""}, []string{"events"}, []string{"create", "patch", "update"}},
	{[]string{"coordination.k8s.io"}, []string{"leases"}, []string{"get", "list", "watch", "create", "update", "patch"}},
}

// GrantSimulator gives kwok its rights, and exempts it from the API server's fair queueing, as kubelets' heartbeats have a
// priority of their own: a flood of other requests must not make simulated nodes look dead.
func (c *Client) GrantSimulator(ctx context.Context, server, user string) error {
	rbac := server + "/apis/rbac.authorization.k8s.io/v1"
	subject := object{"kind": "User", "name": user, "apiGroup": "rbac.authorization.k8s.io"}
	if err := c.apply(ctx, rbac+"/clusterroles/"+simulatorName, object{
		"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
		"metadata": object{"name": simulatorName}, "rules": simulatorRules,
	}); err != nil {
		return err
	}
	if err := c.apply(ctx, rbac+"/clusterrolebindings/"+simulatorName, object{
		"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
		"metadata": object{"name": simulatorName},
		"subjects": []object{subject},
		"roleRef":  object{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": simulatorName},
	}); err != nil {
		return err
	}
	everything := []string{"*"}
	return c.apply(ctx, server+"/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas/"+simulatorName, object{
		"apiVersion": "flowcontrol.apiserver.k8s.io/v1", "kind": "FlowSchema",
		"metadata": object{"name": simulatorName},
		"spec": object{
			"priorityLevelConfiguration": object{"name": "exempt"},
			"matchingPrecedence":         500,
			"rules": []object{{
				"subjects": []object{{"kind": "User", "user": object{"name": user}}},
				"resourceRules": []object{{"verbs": everything, "apiGroups": everything, "resources": everything,
					"clusterScope": true, "namespaces": everything}},
				"nonResourceRules": []object{{"verbs": everything, "nonResourceURLs": everything}},
			}},
		},
	})
}

// ReleaseNodes removes what an earlier kwok left behind: leases that a new one, whose identity differs, would have to sit
// out, and, on nodes, a log port that is not the present one.
func (c *Client) ReleaseNodes(ctx context.Context, server string, port int) error {
	content, err := c.do(ctx, http.MethodGet, server+"/api/v1/nodes?labelSelector="+launch.PowerLabel, "", nil)
	if err != nil {
		return err
	}
	var nodes struct {
		Items []struct {
			Metadata struct{ Name string }
			Status   struct {
				DaemonEndpoints struct{ KubeletEndpoint struct{ Port int } }
			}
		}
	}
	if err := json.Unmarshal(content, &nodes); err != nil {
		return err
	}
	if len(nodes.Items) == 0 {
		return nil
	}
	if _, err := c.do(ctx, http.MethodDelete, server+"/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases", "", nil); err != nil {
		return err
	}
	for _, node := range nodes.Items {
		if old := node.Status.DaemonEndpoints.KubeletEndpoint.Port; old == 0 || old == port {
			continue
		}
		patch := fmt.Appendf(nil, `{"status":{"daemonEndpoints":{"kubeletEndpoint":{"Port":%d}}}}`, port)
		url := server + "/api/v1/nodes/" + node.Metadata.Name + "/status"
		if _, err := c.do(ctx, http.MethodPatch, url, "application/merge-patch+json", patch); err != nil {
			return err
		}
	}
	return nil
}
