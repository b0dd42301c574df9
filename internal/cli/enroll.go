// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/internal/cli/fleet"
	"github.com/masthead-dev/masthead/internal/cli/terminal"
	"github.com/masthead-dev/masthead/pkg/providers/capi"
	"github.com/masthead-dev/masthead/pkg/providers/clusterprofile"
	"github.com/masthead-dev/masthead/pkg/providers/connection"
	"github.com/masthead-dev/masthead/pkg/providers/kubeconfig"
)

// consent holds the confirmation flags of commands that write.
type consent struct {
	yes, wait bool
	timeout   time.Duration
}

func (c *consent) addFlags(cmd *cobra.Command) {
	cmd.Flags().BoolVarP(&c.yes, "yes", "y", false, "Do not ask")
	cmd.Flags().BoolVar(&c.wait, "wait", true, "Wait until it is done")
	cmd.Flags().DurationVar(&c.timeout, "timeout", 5*time.Minute, "How long to wait")
}

func newEnroll(a *app) *cobra.Command {
	var c consent
	var class string
	cmd := a.ofOne(&cobra.Command{
		Use:   "enroll NAME",
		Short: "Enrol a cluster, and wait until Masthead is connected to it",
		Long: `Enrol a cluster: label the Cluster of Cluster API, the Secret with a kubeconfig (secret/NAME), or the ClusterProfile of
another cluster manager (clusterprofile/NAME) with masthead.dev/enroll. The command prints what will happen, and asks for
confirmation. Then it waits until Masthead is connected, or reports why it is not.`,
		Example: `  # Enrol the Cluster w1 with the EnrollmentClass "default"
  kubectl masthead enroll w1

  # Enrol the cluster to which the kubeconfig in a Secret leads, with another class, without confirmation
  kubectl masthead enroll secret/shop -n edge --class edge --yes`,
	}, func(ctx context.Context, hub *fleet.Hub, name string) error {
		return a.enroll(ctx, hub, name, class, c)
	})
	cmd.Flags().StringVar(&class, "class", fleetv1alpha1.DefaultEnrollmentClassName, "The EnrollmentClass")
	c.addFlags(cmd)
	return cmd
}

func newUnenroll(a *app) *cobra.Command {
	var c consent
	cmd := a.ofOne(&cobra.Command{
		Use:   "unenroll NAME",
		Short: "Un-enrol a cluster, and wait until Masthead has left it",
		Long: `Un-enrol a cluster: remove the label masthead.dev/enroll. The command prints what stays and what is removed, and asks for
confirmation. Then it waits until Masthead has offboarded the cluster and disconnected.`,
		Example: `  # Un-enrol the Cluster w1
  kubectl masthead unenroll w1

  # Without confirmation, and without waiting
  kubectl masthead unenroll secret/shop -n edge --yes --wait=false`,
	}, func(ctx context.Context, hub *fleet.Hub, name string) error { return a.unenroll(ctx, hub, name, c) })
	c.addFlags(cmd)
	return cmd
}

// enrollable is the object that represents a cluster.
type enrollable struct {
	key    connection.Key
	object *metav1.PartialObjectMetadata
}

// enrollable finds the object by what the user typed: NAME or cluster/NAME is a Cluster, secret/NAME a Secret,
// clusterprofile/NAME a ClusterProfile.
func (a *app) enrollable(ctx context.Context, hub *fleet.Hub, word string) (*enrollable, error) {
	namespace, err := a.namespace()
	if err != nil {
		return nil, err
	}
	kind, name, ok := strings.Cut(word, "/")
	if !ok {
		kind, name = "cluster", word
	}
	e := &enrollable{object: &metav1.PartialObjectMetadata{}, key: connection.Key{Source: capi.SourceName, Namespace: namespace, Name: name}}
	switch strings.ToLower(kind) {
	case "cluster", "clusters":
		e.object.SetGroupVersionKind(clusterv1.GroupVersion.WithKind("Cluster"))
	case "secret", "secrets":
		e.object.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
		e.key.Source = kubeconfig.SourceName
	case "clusterprofile", "clusterprofiles":
		e.object.SetGroupVersionKind(inventoryv1alpha1.GroupVersion.WithKind("ClusterProfile"))
		e.key.Source = clusterprofile.SourceName
	default:
		return nil, misused("%q is neither a cluster nor a secret nor a clusterprofile", kind)
	}
	var found client.Object = e.object
	profile := &inventoryv1alpha1.ClusterProfile{}
	if e.key.Source == clusterprofile.SourceName {
		found = profile
	}
	if err := hub.Client().Get(ctx, e.key.Object(), found); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("there is no %s %q in the hub", e.object.Kind, e.key.Object())
		}
		return nil, fmt.Errorf("cannot get the %s %q: %w", e.object.Kind, e.key.Object(), err)
	}
	if found == profile {
		if clusterprofile.IsPublished(profile) {
			return nil, misused("the ClusterProfile %q is Masthead's own: name the object that it is about", e.key.Object())
		}
		e.object.ObjectMeta = profile.ObjectMeta
	}
	return e, nil
}

// label writes the enrolment label, on condition that the object is unchanged since it was read.
func (e *enrollable) label(ctx context.Context, c client.Client, value string) error {
	before := e.object.DeepCopy()
	labels := e.object.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[fleetv1alpha1.EnrollLabel] = value
	if value == "" {
		delete(labels, fleetv1alpha1.EnrollLabel)
	}
	e.object.SetLabels(labels)
	if err := c.Patch(ctx, e.object, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("cannot label the %s %q: %w", e.object.Kind, e.key.Object(), err)
	}
	return nil
}

func (a *app) enroll(ctx context.Context, hub *fleet.Hub, word, className string, c consent) error {
	e, err := a.enrollable(ctx, hub, word)
	if err != nil {
		return err
	}
	class, err := getClass(ctx, hub, className)
	if err != nil {
		return err
	}
	value := enrolLabel(className)
	if now, ok := connection.EnrolledClass(e.object.GetLabels()); ok && now != className {
		a.say("The %s %s is enrolled with the EnrollmentClass %q now.", e.object.Kind, e.key.Object(), now)
	}
	a.say("The %s %s will be labelled %s=%s. Then Masthead", e.object.Kind, e.key.Object(), fleetv1alpha1.EnrollLabel, value)
	for _, line := range enrolmentMeans(class) {
		a.say("- %s", line)
	}
	if err := a.agree(c); err != nil {
		return err
	}
	if err := e.label(ctx, hub.Client(), value); err != nil {
		return err
	}
	if !c.wait {
		a.say("Labelled.")
		return nil
	}
	return a.waitConnected(ctx, hub, e.key, c.timeout)
}

// enrolmentMeans describes what Masthead does in the clusters of a class.
func enrolmentMeans(class *fleetv1alpha1.EnrollmentClass) []string {
	out := []string{"connects to the cluster with its kubeconfig, and creates the definition hubs.masthead.dev there, which names this hub"}
	agent := class.Spec.Agent
	if agent.Mode == fleetv1alpha1.AgentModeDisabled {
		out = append(out, "synchronises no claims (agent.mode: Disabled)")
	} else {
		which := "of every API group that the hub publishes"
		if len(agent.APIGroups) > 0 {
			which = "of the API groups " + strings.Join(agent.APIGroups, ", ")
		}
		where := "the namespace " + agent.DefaultTargetNamespace + " of the hub"
		if agent.MatchNamespaces {
			where = "the namespaces of the hub with the same names as their own namespaces"
		}
		out = append(out, fmt.Sprintf("installs the claim kinds %s there, and synchronises their claims to %s", which, where))
		what := "deleted"
		if agent.DeletionPolicy == fleetv1alpha1.DeletionPolicyOrphan {
			what = "kept"
		}
		out = append(out, "ensures that, when a claim is deleted, its object in the hub is "+what)
	}
	if mode := class.Spec.Applications.Mode; mode != fleetv1alpha1.ApplicationsModeDisabled {
		out = append(out, fmt.Sprintf("installs the kind Application there, and reconciles Applications (applications.mode: %s)", mode))
	}
	if class.Spec.References.Mode == fleetv1alpha1.ReferencesModeEnabled {
		out = append(out, "resolves spec.references of objects there")
	}
	return out
}

func (a *app) unenroll(ctx context.Context, hub *fleet.Hub, word string, c consent) error {
	e, err := a.enrollable(ctx, hub, word)
	if err != nil {
		return err
	}
	if _, ok := connection.EnrolledClass(e.object.GetLabels()); !ok {
		a.say("The %s %s is not enrolled.", e.object.Kind, e.key.Object())
		return nil
	}
	a.say("The label %s will be removed from the %s %s. Then Masthead", fleetv1alpha1.EnrollLabel, e.object.Kind, e.key.Object())
	a.say("- removes its finalizers from claims, the copies of definitions and Compositions, and its policy, if the cluster responds")
	a.say("- disconnects, and removes its own ClusterProfile")
	a.say("Claims, their Secrets and Applications stay in the cluster. The objects of claims stay in the hub, with all that Crossplane created.")
	a.say("A claim that is deleted from then on leaves its object in the hub.")
	clusters, err := hub.Clusters(ctx)
	if err != nil {
		return err
	}
	if now, err := fleet.Find(clusters, e.key.String()); err == nil && now.State != fleet.StateConnected {
		a.say("There is no connection to the cluster now (%s): its claims keep Masthead's finalizer, and hang when they are deleted.", now.Reason)
	}
	if err := a.agree(c); err != nil {
		return err
	}
	if err := e.label(ctx, hub.Client(), ""); err != nil {
		return err
	}
	if !c.wait {
		a.say("The label is removed.")
		return nil
	}
	a.note("waiting until Masthead has left the cluster ...")
	err = a.poll(ctx, c.timeout, func(ctx context.Context) (bool, error) {
		profile := &metav1.PartialObjectMetadata{}
		profile.SetGroupVersionKind(inventoryv1alpha1.GroupVersion.WithKind("ClusterProfile"))
		err := hub.Client().Get(ctx, e.key.Published(), profile)
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	})
	if err != nil {
		return fmt.Errorf("the label is removed, but Masthead has not left the cluster yet: %w", err)
	}
	a.say("Masthead has left the cluster %s.", e.key)
	return nil
}

// waitConnected waits until a cluster is connected, and reports each reason why it is not.
func (a *app) waitConnected(ctx context.Context, hub *fleet.Hub, key connection.Key, timeout time.Duration) error {
	reported := ""
	err := a.poll(ctx, timeout, func(ctx context.Context) (bool, error) {
		clusters, err := hub.Clusters(ctx)
		if err != nil {
			return false, err
		}
		c, err := fleet.Find(clusters, key.String())
		if err != nil {
			return false, nil //nolint:nilerr // It is not there yet.
		}
		if now := c.Reason + ": " + c.Message; c.State != fleet.StateConnected && now != reported {
			reported = now
			a.note("waiting: %s", now)
		}
		return c.State == fleet.StateConnected, nil
	})
	if err != nil {
		return fmt.Errorf("the cluster is enrolled, but not connected yet: %s (kubectl masthead why cluster %s): %w", reported, key, err)
	}
	a.say("Masthead is connected to the cluster %s.", key)
	return nil
}

// poll polls every second.
func (a *app) poll(ctx context.Context, timeout time.Duration, done func(context.Context) (bool, error)) error {
	err := wait.PollUntilContextTimeout(ctx, time.Second, timeout, true, done)
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("waited for %s", timeout)
	}
	return err
}

// errNotAgreed is returned if the user declines.
var errNotAgreed = errors.New("nothing was changed")

// agree asks whether to go on. Only y or yes agrees; the end of the input does not.
func (a *app) agree(c consent) error {
	if c.yes {
		return nil
	}
	_, _ = fmt.Fprint(a.Streams.ErrOut, "Go on? [y/N] ")
	line, _ := bufio.NewReader(a.Streams.In).ReadString('\n')
	switch strings.ToLower(strings.TrimSpace(line)) {
	case "y", "yes":
		return nil
	}
	return errNotAgreed
}

// say writes a line of an answer.
func (a *app) say(format string, arguments ...any) {
	_, _ = fmt.Fprintln(a.Streams.Out, terminal.Clean(fmt.Sprintf(format, arguments...)))
}
