// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package localfleet

import (
	"context"
	"encoding/base64"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// WorkloadLabel is on everything that registers a workload cluster in the hub; its value is the workload cluster's
	// name.
	WorkloadLabel = "localfleet.masthead.dev/workload"

	// boundSecretAnnotation is on the kubeconfig Secret in the hub and names the Secret in the workload cluster that the
	// token in it is bound to.
	boundSecretAnnotation = "localfleet.masthead.dev/bound-secret"

	// secretKey is the key of a Cluster API kubeconfig Secret, secretType its type.
	secretKey  = "value"
	secretType = "cluster.x-k8s.io/secret"

	provisionTimeout = time.Minute
)

var (
	localClusterKind = schema.GroupVersionKind{
		Group: "infrastructure.localfleet.masthead.dev", Version: "v1alpha1", Kind: "LocalCluster",
	}
	localControlPlaneKind = schema.GroupVersionKind{
		Group: "controlplane.localfleet.masthead.dev", Version: "v1alpha1", Kind: "LocalControlPlane",
	}
	clusterKind = clusterv1.GroupVersion.WithKind("Cluster")
)

// Registration is a Cluster object in the hub for a workload cluster. Up and Add register each workload cluster once,
// under its own name; tests that need more, or another name, register it themselves.
type Registration struct {
	// Workload is the name of the workload cluster in the fleet.
	Workload string
	// Namespace and Name of the Cluster object. Empty: Options.Namespace and the name of the workload cluster.
	Namespace, Name string
	// Labels and Annotations of the Cluster object.
	Labels, Annotations map[string]string
}

// Register creates, for a workload cluster, what Cluster API and its providers would have created: the Cluster, its
// infrastructure and control plane, and the Secret with its kubeconfig. It returns when the Cluster is Provisioned.
func (f *Fleet) Register(ctx context.Context, r Registration) error {
	c, unlock, err := f.lockCluster(ctx, r.Workload)
	if err != nil {
		return err
	}
	defer unlock()
	return f.register(ctx, c, r)
}

func (f *Fleet) register(ctx context.Context, c *cluster, r Registration) error {
	if r.Namespace == "" {
		r.Namespace = f.state.Namespace
	}
	if r.Name == "" {
		r.Name = r.Workload
	}
	hub, err := f.Config(HubName)
	if err != nil {
		return err
	}
	kubeconfig, token, err := c.mintKubeconfig(ctx)
	if err != nil {
		return err
	}
	if err := f.applyRegistration(ctx, hub, c, r, kubeconfig, token.secret); err != nil {
		return fmt.Errorf("cannot register cluster %q in the hub as %s/%s: %w", c.name, r.Namespace, r.Name, err)
	}
	f.logf("%s: registered in the hub as Cluster %s/%s", c.name, r.Namespace, r.Name)
	return nil
}

func (f *Fleet) applyRegistration(
	ctx context.Context, config *rest.Config, c *cluster, r Registration, kubeconfig []byte, boundSecret string,
) error {
	hub, err := newClient(config)
	if err != nil {
		return err
	}
	if r.Namespace != metav1.NamespaceDefault {
		namespace := newObject(corev1.SchemeGroupVersion.WithKind("Namespace"), "", r.Namespace, nil)
		if err := applyObject(ctx, hub, namespace); err != nil {
			return err
		}
	}
	version := f.sources.kubernetesVersion
	port := int64(c.ports()[portAPIServer])
	controlPlaneEndpoint := map[string]any{"host": "127.0.0.1", "port": port}

	infrastructure := newObject(localClusterKind, r.Namespace, r.Name, c)
	infrastructure.Object["spec"] = map[string]any{"controlPlaneEndpoint": controlPlaneEndpoint}
	controlPlane := newObject(localControlPlaneKind, r.Namespace, r.Name, c)
	controlPlane.Object["spec"] = map[string]any{"version": version}
	// Their status is written before the Cluster, because Cluster API checks again only after half a minute if it is
	// missing.
	if err := applyWithStatus(ctx, hub, infrastructure, map[string]any{
		"ready": true, "initialization": map[string]any{"provisioned": true},
	}); err != nil {
		return err
	}
	if err := applyWithStatus(ctx, hub, controlPlane, map[string]any{
		"ready": true, "initialized": true, "version": version, "externalManagedControlPlane": true,
		"initialization": map[string]any{"controlPlaneInitialized": true},
	}); err != nil {
		return err
	}
	if err := applyKubeconfigSecret(ctx, hub, r, c, controlPlane, kubeconfig, boundSecret); err != nil {
		return err
	}

	object := newObject(clusterKind, r.Namespace, r.Name, c)
	labels := object.GetLabels()
	maps.Copy(labels, r.Labels)
	object.SetLabels(labels)
	if len(r.Annotations) > 0 {
		object.SetAnnotations(r.Annotations)
	}
	object.Object["spec"] = map[string]any{
		"controlPlaneEndpoint": controlPlaneEndpoint,
		"infrastructureRef":    reference(localClusterKind, r.Name),
		"controlPlaneRef":      reference(localControlPlaneKind, r.Name),
	}
	if f.state.WithClusterAPI {
		if err := applyObject(ctx, hub, object); err != nil {
			return err
		}
	} else if err := applyWithStatus(ctx, hub, object, provisionedStatus(f.clock.Now())); err != nil {
		return err
	}
	return waitProvisioned(ctx, hub, object)
}

// applyKubeconfigSecret writes the Secret as a control plane provider does: owned by the control plane object, so that
// it is deleted with it.
func applyKubeconfigSecret(
	ctx context.Context, hub client.Client, r Registration, c *cluster, controlPlane *unstructured.Unstructured, kubeconfig []byte, boundSecret string,
) error {
	owner := &unstructured.Unstructured{}
	owner.SetGroupVersionKind(localControlPlaneKind)
	if err := hub.Get(ctx, client.ObjectKeyFromObject(controlPlane), owner); err != nil {
		return fmt.Errorf("cannot get %s %q: %w", localControlPlaneKind.Kind, controlPlane.GetName(), err)
	}
	secret := newObject(corev1.SchemeGroupVersion.WithKind("Secret"), r.Namespace, r.Name+"-kubeconfig", c)
	labels := secret.GetLabels()
	labels[clusterv1.ClusterNameLabel] = r.Name
	secret.SetLabels(labels)
	secret.SetAnnotations(map[string]string{boundSecretAnnotation: boundSecret})
	secret.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(owner, localControlPlaneKind)})
	secret.Object["type"] = secretType
	secret.Object["data"] = map[string]any{secretKey: base64.StdEncoding.EncodeToString(kubeconfig)}
	return applyObject(ctx, hub, secret)
}

// provisionedStatus is the part of a Cluster's status that Cluster API core would write.
func provisionedStatus(now time.Time) map[string]any {
	condition := func(conditionType, reason string) any {
		return map[string]any{
			"type": conditionType, "status": "True", "reason": reason, "message": "",
			"lastTransitionTime": now.UTC().Format(time.RFC3339),
		}
	}
	return map[string]any{
		"phase":          string(clusterv1.ClusterPhaseProvisioned),
		"initialization": map[string]any{"infrastructureProvisioned": true, "controlPlaneInitialized": true},
		"conditions": []any{
			condition(clusterv1.ClusterInfrastructureReadyCondition, clusterv1.ClusterInfrastructureReadyReason),
			condition(clusterv1.ClusterControlPlaneInitializedCondition, clusterv1.ClusterControlPlaneInitializedReason),
			condition(clusterv1.ClusterControlPlaneAvailableCondition, clusterv1.ClusterControlPlaneAvailableReason),
		},
	}
}

func waitProvisioned(ctx context.Context, hub client.Client, object *unstructured.Unstructured) error {
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(clusterKind)
	err := wait.PollUntilContextTimeout(ctx, readyInterval, provisionTimeout, true, func(ctx context.Context) (bool, error) {
		if err := hub.Get(ctx, client.ObjectKeyFromObject(object), live); err != nil {
			return false, nil //nolint:nilerr // Tried again until the time is over.
		}
		phase, _, _ := unstructured.NestedString(live.Object, "status", "phase")
		initialized, _, _ := unstructured.NestedBool(live.Object, "status", "initialization", "controlPlaneInitialized")
		return phase == string(clusterv1.ClusterPhaseProvisioned) && initialized, nil
	})
	if err != nil {
		return fmt.Errorf("the Cluster was not provisioned (status %v): %w", live.Object["status"], err)
	}
	return nil
}

// Unregister deletes a Cluster object and what belongs to it from the hub and returns when all of it is gone. The
// workload cluster keeps running. An empty namespace or name means the same as in Registration.
func (f *Fleet) Unregister(ctx context.Context, r Registration) error {
	_, unlock, err := f.lockCluster(ctx, r.Workload)
	if err != nil {
		return err
	}
	defer unlock()
	if r.Namespace == "" {
		r.Namespace = f.state.Namespace
	}
	if r.Name == "" {
		r.Name = r.Workload
	}
	return f.unregister(ctx, client.ObjectKey{Namespace: r.Namespace, Name: r.Name})
}

func (f *Fleet) unregister(ctx context.Context, key client.ObjectKey) error {
	config, err := f.Config(HubName)
	if err != nil {
		return err
	}
	hub, err := newClient(config)
	if err != nil {
		return err
	}
	// Cluster API core would delete the infrastructure and the control plane with the Cluster, and the garbage collector
	// would delete the Secret. That may take the garbage collector half a minute while it does not know the kind of the
	// Secret's owner yet.
	for _, object := range []*unstructured.Unstructured{
		newObject(clusterKind, key.Namespace, key.Name, nil),
		newObject(localControlPlaneKind, key.Namespace, key.Name, nil),
		newObject(localClusterKind, key.Namespace, key.Name, nil),
		newObject(corev1.SchemeGroupVersion.WithKind("Secret"), key.Namespace, key.Name+"-kubeconfig", nil),
	} {
		if err := hub.Delete(ctx, object); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("cannot delete %s %s from the hub: %w", object.GetKind(), key, err)
		}
		if err := waitGone(ctx, hub, object); err != nil {
			return err
		}
	}
	return nil
}

func waitGone(ctx context.Context, hub client.Client, object *unstructured.Unstructured) error {
	err := wait.PollUntilContextTimeout(ctx, readyInterval, provisionTimeout, true, func(ctx context.Context) (bool, error) {
		return apierrors.IsNotFound(hub.Get(ctx, client.ObjectKeyFromObject(object), object.DeepCopy())), nil
	})
	if err != nil {
		return fmt.Errorf("%s %q is still in the hub: %w", object.GetKind(), client.ObjectKeyFromObject(object), err)
	}
	return nil
}

// kubeconfigSecrets returns the Secrets in the hub that lead to the workload cluster.
func (f *Fleet) kubeconfigSecrets(ctx context.Context, workload string) (kubernetes.Interface, []corev1.Secret, error) {
	config, err := f.Config(HubName)
	if err != nil {
		return nil, nil, err
	}
	hub, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot create a client for the hub: %w", err)
	}
	list, err := hub.CoreV1().Secrets(metav1.NamespaceAll).List(ctx, metav1.ListOptions{LabelSelector: WorkloadLabel + "=" + workload})
	if err != nil {
		return nil, nil, fmt.Errorf("cannot list the kubeconfig Secrets of cluster %q in the hub: %w", workload, err)
	}
	return hub, list.Items, nil
}

// registrations returns the keys of the Clusters in the hub under which the workload cluster is registered.
func (f *Fleet) registrations(ctx context.Context, workload string) ([]client.ObjectKey, error) {
	config, err := f.Config(HubName)
	if err != nil {
		return nil, err
	}
	hub, err := newClient(config)
	if err != nil {
		return nil, err
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(clusterKind)
	if err := hub.List(ctx, list, client.MatchingLabels{WorkloadLabel: workload}); err != nil {
		return nil, fmt.Errorf("cannot list the Clusters of workload cluster %q in the hub: %w", workload, err)
	}
	var keys []client.ObjectKey
	for i := range list.Items {
		keys = append(keys, client.ObjectKeyFromObject(&list.Items[i]))
	}
	return keys, nil
}

func newObject(kind schema.GroupVersionKind, namespace, name string, c *cluster) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{}}
	object.SetGroupVersionKind(kind)
	object.SetNamespace(namespace)
	object.SetName(name)
	if c != nil {
		object.SetLabels(map[string]string{WorkloadLabel: c.name})
	}
	return object
}

func reference(kind schema.GroupVersionKind, name string) map[string]any {
	return map[string]any{"apiGroup": kind.Group, "kind": kind.Kind, "name": name}
}

// applyWithStatus applies an object and then its status.
func applyWithStatus(ctx context.Context, hub client.Client, object *unstructured.Unstructured, status map[string]any) error {
	if err := applyObject(ctx, hub, object); err != nil {
		return err
	}
	withStatus := newObject(object.GroupVersionKind(), object.GetNamespace(), object.GetName(), nil)
	withStatus.Object["status"] = status
	err := hub.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(withStatus), fieldManager, client.ForceOwnership)
	if err != nil {
		return fmt.Errorf("cannot apply the status of %s %q: %w", object.GetKind(), object.GetName(), err)
	}
	return nil
}
