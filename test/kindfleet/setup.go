// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package kindfleet

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/masthead-dev/masthead/test/harness"
	"github.com/masthead-dev/masthead/test/localfleet"
)

// controllers are the manifests of Crossplane core, its function and Cluster API core in the hub.
//
//go:embed controllers.yaml
var controllers string

// registration holds the objects that Cluster API and its providers would create for a workload cluster.
//
//go:embed registration.yaml
var registration string

// functionEndpoint is the endpoint of the composition function for Crossplane: in Crossplane's own Pod.
const functionEndpoint = "127.0.0.1:9443"

func (f *Fleet) setUpHub(ctx context.Context) error {
	config, err := f.Config(localfleet.HubName)
	if err != nil {
		return err
	}
	if err := localfleet.InstallHub(ctx, config); err != nil {
		return err
	}
	// Masthead's replicas are to run on both nodes.
	if _, err := f.Kubectl(ctx, localfleet.HubName, "taint", "nodes", "--all", "node-role.kubernetes.io/control-plane-"); err != nil &&
		!strings.Contains(err.Error(), "not found") {
		return err
	}
	if err := f.load(ctx, localfleet.HubName, "crossplane", "cluster-api", "localfleet-function", "masthead"); err != nil {
		return err
	}
	if err := f.writeCertificates(ctx); err != nil {
		return err
	}
	if err := harness.Apply(ctx, f, localfleet.HubName, controllers); err != nil {
		return fmt.Errorf("cannot install the controllers of the hub: %w", err)
	}
	for _, name := range []string{"crossplane", "cluster-api"} {
		_, err := f.Kubectl(ctx, localfleet.HubName, "rollout", "status", "deployment/"+name, "--namespace", namespaceOf[name], "--timeout=3m")
		if err != nil {
			return err
		}
	}
	return localfleet.InstallFunction(ctx, config, functionEndpoint)
}

// namespaceOf holds the namespaces of the hub's controllers.
var namespaceOf = map[string]string{"crossplane": "crossplane-system", "cluster-api": "capi-system"}

// writeCertificates creates the Secrets with the certificates of the hub's controllers.
func (f *Fleet) writeCertificates(ctx context.Context) error {
	folder := filepath.Join(f.options.Dir, "certificates")
	if err := localfleet.FunctionCertificates(folder); err != nil {
		return err
	}
	for name, namespace := range map[string]string{
		localfleet.Crossplane: namespaceOf["crossplane"], localfleet.Function: namespaceOf["crossplane"],
	} {
		if _, err := f.Kubectl(ctx, localfleet.HubName, "create", "secret", "generic", name+"-certificates", "--namespace", namespace,
			"--from-file="+filepath.Join(folder, name)); err != nil {
			return err
		}
	}
	// Cluster API core needs one for webhooks that nothing calls.
	_, err := f.Kubectl(ctx, localfleet.HubName, "create", "secret", "generic", "cluster-api-certificates", "--namespace", namespaceOf["cluster-api"],
		"--from-file="+filepath.Join(folder, localfleet.Function))
	return err
}

// setUpWorkload gives the manager its rights in a workload cluster, as the cluster's administrator does, and gives
// Cluster API core its own.
func (f *Fleet) setUpWorkload(ctx context.Context, cluster string) error {
	if err := f.load(ctx, cluster, "standin-mysql", "standin-wordpress", "standin-busybox"); err != nil {
		return err
	}
	repository, err := localfleet.Repository()
	if err != nil {
		return err
	}
	if err := f.Helm(ctx, cluster, "install", "masthead-workload", filepath.Join(repository, "charts", "masthead-workload"), "--create-namespace",
		"--set-json", `apiGroups=[{"group":"database.acmeco.org","resources":["mysqlinstancerequirements"]}]`,
		"--set", "healthChecks=true,componentsPolicy=true"); err != nil {
		return err
	}
	config, err := f.Config(cluster)
	if err != nil {
		return err
	}
	return localfleet.GrantClusterAPI(ctx, config)
}

// Register creates a Cluster in the hub, in the namespace default, with a kubeconfig of the manager's service account,
// and returns when Cluster API has found it provisioned.
func (f *Fleet) Register(ctx context.Context, r localfleet.Registration) error {
	name := cmp.Or(r.Name, r.Workload)
	token, err := f.Kubectl(ctx, r.Workload, "create", "token", localfleet.ServiceAccountName,
		"--namespace", localfleet.ServiceAccountNamespace, "--duration", "24h")
	if err != nil {
		return err
	}
	internal, err := f.run(ctx, nil, f.options.Kind, "get", "kubeconfig", "--internal", "--name", Prefix+r.Workload)
	if err != nil {
		return err
	}
	kubeconfig, err := withToken(internal, strings.TrimSpace(token))
	if err != nil {
		return err
	}
	objects := strings.NewReplacer("NAME", name, "HOST", f.Node(r.Workload), "KUBECONFIG", base64.StdEncoding.EncodeToString(kubeconfig)).Replace(registration)
	path := filepath.Join(f.options.Dir, name+"-registration.yaml")
	if err := os.WriteFile(path, []byte(objects), 0o600); err != nil {
		return fmt.Errorf("cannot write the objects of cluster %q: %w", name, err)
	}
	// Their status is written before the Cluster, because Cluster API checks again only after half a minute if it is
	// missing.
	given := "--selector=localfleet.masthead.dev/status=given"
	commands := [][]string{
		{"apply", "--server-side", given, "-f", path},
		{"apply", "--server-side", "--subresource=status", given, "-f", path},
		{"apply", "--server-side", "-f", path},
		{"wait", "clusters.cluster.x-k8s.io/" + name, "--for=jsonpath={.status.initialization.controlPlaneInitialized}=true", "--timeout=3m"},
	}
	for label, value := range r.Labels {
		commands = append(commands, []string{"label", "clusters.cluster.x-k8s.io", name, label + "=" + value})
	}
	for _, args := range commands {
		if _, err := f.Kubectl(ctx, localfleet.HubName, args...); err != nil {
			return fmt.Errorf("cannot register cluster %q in the hub as %q: %w", r.Workload, name, err)
		}
	}
	return nil
}

// Unregister deletes what Register created. Cluster API deletes some of that with the Cluster.
func (f *Fleet) Unregister(ctx context.Context, r localfleet.Registration) error {
	name := cmp.Or(r.Name, r.Workload)
	for _, object := range []string{
		"clusters.cluster.x-k8s.io/" + name, "localcontrolplanes.controlplane.localfleet.masthead.dev/" + name,
		"localclusters.infrastructure.localfleet.masthead.dev/" + name, "secret/" + name + "-kubeconfig",
	} {
		if _, err := f.Kubectl(ctx, localfleet.HubName, "delete", object, "--ignore-not-found", "--timeout=2m"); err != nil {
			return err
		}
	}
	return nil
}

// withToken returns a kubeconfig whose only credentials are a token.
func withToken(kubeconfig, token string) ([]byte, error) {
	config, err := clientcmd.Load([]byte(kubeconfig))
	if err != nil {
		return nil, fmt.Errorf("cannot read a kubeconfig of kind: %w", err)
	}
	current, ok := config.Contexts[config.CurrentContext]
	if !ok {
		return nil, fmt.Errorf("a kubeconfig of kind has no context %q", config.CurrentContext)
	}
	config.AuthInfos = map[string]*clientcmdapi.AuthInfo{current.AuthInfo: {Token: token}}
	return clientcmd.Write(*config)
}
