// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/internal/cli/connect"
	"github.com/masthead-dev/masthead/internal/cli/fleet"
	"github.com/masthead-dev/masthead/internal/cli/requirements"
	"github.com/masthead-dev/masthead/pkg/providers/connection"
	"github.com/masthead-dev/masthead/pkg/providers/kubeconfig"
)

// fieldManager is the command line's field manager, and the mark on the Secrets that it creates.
const fieldManager = "kubectl-masthead"

// managedByLabel names the creator of a Secret.
const managedByLabel = "app.kubernetes.io/managed-by"

// connecting holds the flags of the command.
type connecting struct {
	consent

	kubeconfig, context, server, class string
	lifetime                           time.Duration
	dryRun                             bool
}

func newConnect(a *app) *cobra.Command {
	var c connecting
	cmd := a.ofOne(&cobra.Command{
		Use:   "connect NAME",
		Short: "Connect a cluster that Cluster API does not know, and enrol it",
		Long: `Connect a cluster that Cluster API does not know to the hub, as a workload cluster: create a ServiceAccount in it, with the
rights that Masthead needs for what the EnrollmentClass enables, and in the hub the Secret NAME with a kubeconfig for that
ServiceAccount, and enrol it. The command prints what it will do, and asks for confirmation. Then it waits until Masthead is
connected, or reports why it is not.

--workload-kubeconfig and --workload-context select that cluster and a user who may grant rights there; this kubeconfig is only
used on this machine. The token is not renewed: run the command again before it expires, and when the hub offers claim kinds of
another API group.`,
		Example: `  # The cluster that a kubeconfig leads to
  kubectl masthead connect shop -n edge --workload-kubeconfig shop.kubeconfig

  # A context of the usual kubeconfig; the hub reaches it at another address
  kubectl masthead connect shop -n edge --workload-context shop-admin --server https://10.0.0.7:6443

  # What would happen
  kubectl masthead connect shop -n edge --workload-context shop-admin --dry-run`,
	}, func(ctx context.Context, hub *fleet.Hub, name string) error { return a.connect(ctx, hub, name, c) })
	flags := cmd.Flags()
	flags.StringVar(&c.kubeconfig, "workload-kubeconfig", "", "Kubeconfig of the workload cluster")
	flags.StringVar(&c.context, "workload-context", "", "Context of the workload cluster, in that kubeconfig or in the usual one")
	flags.StringVar(&c.server, "server", "", "Address of its API server as the hub reaches it (default the one in the kubeconfig)")
	flags.StringVar(&c.class, "class", fleetv1alpha1.DefaultEnrollmentClassName, "The EnrollmentClass")
	flags.DurationVar(&c.lifetime, "token-duration", 30*24*time.Hour, "Lifetime of the token to request; the cluster may shorten it")
	flags.BoolVar(&c.dryRun, "dry-run", false, "Print what would happen, and change nothing")
	c.addFlags(cmd)
	return cmd
}

// joining is the cluster to connect, as its administrator reaches it.
type joining struct {
	*fleet.ClusterClient

	cfg    *rest.Config
	target connect.Target
}

// joining reads the kubeconfig that the user names.
func (a *app) joining(c connecting) (*joining, error) {
	if c.kubeconfig == "" && c.context == "" {
		return nil, misused("specify the cluster: --workload-kubeconfig, --workload-context, or both")
	}
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = c.kubeconfig
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: c.context})
	cfg, err := loader.ClientConfig()
	if err != nil {
		return nil, misused("cannot use the kubeconfig of the workload cluster: %w", err)
	}
	if err := rest.LoadTLSFiles(cfg); err != nil {
		return nil, misused("cannot use the kubeconfig of the workload cluster: %w", err)
	}
	w := &joining{cfg: cfg, target: connect.Target{
		Server: cfg.Host, Authority: cfg.CAData, TLSServerName: cfg.ServerName, Insecure: cfg.Insecure,
	}}
	if cfg.Proxy != nil {
		raw, err := loader.RawConfig()
		if err != nil {
			return nil, misused("cannot use the kubeconfig of the workload cluster: %w", err)
		}
		name := c.context
		if name == "" {
			name = raw.CurrentContext
		}
		if used := raw.Contexts[name]; used != nil && raw.Clusters[used.Cluster] != nil {
			w.target.ProxyURL = raw.Clusters[used.Cluster].ProxyURL
		}
	}
	if c.server != "" {
		w.target.Server = c.server
	}
	w.ClusterClient, err = fleet.NewSide("the workload cluster", cfg)
	return w, err
}

func (a *app) connect(ctx context.Context, hub *fleet.Hub, name string, c connecting) error {
	w, err := a.joining(c)
	if err != nil {
		return err
	}
	namespace, err := a.namespace()
	if err != nil {
		return err
	}
	key := connection.Key{Source: kubeconfig.SourceName, Namespace: namespace, Name: name}
	// This is checked before anything is changed. The token is not known yet, so another text stands for it.
	if _, err := connect.Kubeconfig(w.target, "none", a.allow); err != nil {
		return err
	}
	if err := apart(ctx, hub, w); err != nil {
		return err
	}
	if err := ownSecret(ctx, hub, key); err != nil {
		return err
	}
	class, err := getClass(ctx, hub, c.class)
	if err != nil {
		return err
	}
	kinds, err := published(ctx, hub, &requirements.Facts{})
	if err != nil && !errors.Is(err, fleet.ErrNoSuchKind) {
		return err
	}
	rights, err := connect.Rights(class, kinds)
	if err != nil {
		return err
	}
	a.sayConnect(w, key, class, rights, c)
	if c.dryRun {
		a.say("Nothing was changed.")
		return nil
	}
	if err := a.agree(c.consent); err != nil {
		return err
	}
	return a.doConnect(ctx, hub, w, key, rights, c)
}

// apart refuses the hub as its own workload cluster, before anything is written to it.
func apart(ctx context.Context, hub *fleet.Hub, w *joining) error {
	var uids [2]string
	for i, side := range []*fleet.ClusterClient{hub.ClusterClient, w.ClusterClient} {
		ns, err := side.Get(ctx, corev1.SchemeGroupVersion.WithKind("Namespace"), client.ObjectKey{Name: metav1.NamespaceSystem})
		if err != nil {
			return fmt.Errorf("cannot get the namespace %s of %s, whose UID identifies it: %w", metav1.NamespaceSystem, side.Name, err)
		}
		uids[i] = string(ns.GetUID())
	}
	if uids[0] == uids[1] {
		return errors.New("the kubeconfig of the workload cluster leads to the hub, which cannot be a workload cluster")
	}
	return nil
}

// ownSecret refuses a Secret that the command line did not create.
func ownSecret(ctx context.Context, hub *fleet.Hub, key connection.Key) error {
	secret, err := hub.Get(ctx, corev1.SchemeGroupVersion.WithKind("Secret"), key.Object())
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("cannot get the Secret %q: %w", key.Object(), err)
	case secret.GetLabels()[managedByLabel] != fieldManager:
		return fmt.Errorf("the hub has a Secret %q that was not created by this command: choose another name", key.Object())
	}
	return nil
}

func (a *app) sayConnect(w *joining, key connection.Key, class *fleetv1alpha1.EnrollmentClass, rights []*unstructured.Unstructured, c connecting) {
	a.say("In the cluster at %s these will be applied:", w.cfg.Host)
	for _, u := range rights {
		name := u.GetName()
		if u.GetNamespace() != "" {
			name = u.GetNamespace() + "/" + name
		}
		a.say("- %s %s", u.GetKind(), name)
	}
	a.say("In the hub the Secret %s will be applied, with a kubeconfig for that ServiceAccount at %s.", key.Object(), w.target.Server)
	a.say("Its token is requested for %s, and not renewed. The label %s=%s enrols it. Then Masthead", duration.HumanDuration(c.lifetime), fleetv1alpha1.EnrollLabel, enrolLabel(c.class))
	for _, line := range enrolmentMeans(class) {
		a.say("- %s", line)
	}
}

func (a *app) doConnect(ctx context.Context, hub *fleet.Hub, w *joining, key connection.Key, rights []*unstructured.Unstructured, c connecting) error {
	for _, u := range rights {
		if err := applied(ctx, w.Client(), u); err != nil {
			return fmt.Errorf("cannot apply the %s %q in the workload cluster: %w", u.GetKind(), u.GetName(), err)
		}
	}
	account := client.ObjectKey{Namespace: connect.AccountNamespace, Name: connect.AccountName}
	token, ends, err := fleet.NewToken(ctx, w.cfg, account, c.lifetime)
	if err != nil {
		return err
	}
	data, err := connect.Kubeconfig(w.target, token, a.allow)
	if err != nil {
		return err
	}
	secret := &unstructured.Unstructured{Object: map[string]any{"type": string(corev1.SecretTypeOpaque)}}
	secret.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	secret.SetNamespace(key.Namespace)
	secret.SetName(key.Name)
	secret.SetLabels(map[string]string{fleetv1alpha1.EnrollLabel: enrolLabel(c.class), managedByLabel: fieldManager})
	secret.Object["data"] = map[string]any{"kubeconfig": base64.StdEncoding.EncodeToString(data)}
	if err := applied(ctx, hub.Client(), secret); err != nil {
		return fmt.Errorf("cannot apply the Secret %q in the hub: %w", key.Object(), err)
	}
	a.say("The token expires at %s. Run this command again before then.", ends.UTC().Format(time.RFC3339))
	if !c.wait {
		a.say("Enrolled.")
		return nil
	}
	return a.waitConnected(ctx, hub, key, c.timeout)
}

// applied applies an object as the command line's own.
func applied(ctx context.Context, c client.Client, u *unstructured.Unstructured) error {
	return c.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.FieldOwner(fieldManager), client.ForceOwnership)
}

// enrolLabel returns the value of the label that enrols with a class.
func enrolLabel(class string) string {
	if class == fleetv1alpha1.DefaultEnrollmentClassName {
		return fleetv1alpha1.EnrollLabelTrue
	}
	return class
}

// getClass gets an EnrollmentClass.
func getClass(ctx context.Context, hub *fleet.Hub, name string) (*fleetv1alpha1.EnrollmentClass, error) {
	class := &fleetv1alpha1.EnrollmentClass{}
	err := hub.Client().Get(ctx, client.ObjectKey{Name: name}, class)
	switch {
	case apierrors.IsNotFound(err):
		return nil, fmt.Errorf("there is no EnrollmentClass %q in the hub", name)
	case meta.IsNoMatchError(err):
		return nil, fmt.Errorf("the hub has no EnrollmentClasses: is it the hub, and is Masthead installed? (%w)", fleet.ErrNoSuchKind)
	case err != nil:
		return nil, fmt.Errorf("cannot get the EnrollmentClass %q: %w", name, err)
	}
	return class, nil
}
