// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// LeaseName is the name of the lease that the manager's replicas hold.
const LeaseName = "masthead-leader"

const (
	// metricsReader is the ClusterRole for reading the manager's metrics.
	metricsReader = "masthead-metrics-reader"

	// metricsPort is the name of the port, and defaultMetricsPort the number if no port has that name.
	metricsPort        = "metrics"
	defaultMetricsPort = 8443

	// scrapeDeadline is how long a manager may take for its metrics.
	scrapeDeadline = 30 * time.Second
)

// ManagerLabels are the labels of everything installed with the manager, including its Pods.
func ManagerLabels() client.MatchingLabels {
	return client.MatchingLabels{"app.kubernetes.io/name": "masthead"}
}

// MetricsReader finds a ServiceAccount that may read the manager's metrics.
func (h *Hub) MetricsReader(ctx context.Context) (client.ObjectKey, error) {
	bindings := &rbacv1.ClusterRoleBindingList{}
	if err := h.client.List(ctx, bindings); err != nil {
		return client.ObjectKey{}, fmt.Errorf("cannot list ClusterRoleBindings, to find who may read metrics: %w", err)
	}
	var found []client.ObjectKey
	for _, b := range bindings.Items {
		if b.RoleRef.Kind != "ClusterRole" || b.RoleRef.Name != metricsReader {
			continue
		}
		for _, s := range b.Subjects {
			if s.Kind == rbacv1.ServiceAccountKind {
				found = append(found, client.ObjectKey{Namespace: s.Namespace, Name: s.Name})
			}
		}
	}
	if len(found) == 0 {
		return client.ObjectKey{}, fmt.Errorf("no ServiceAccount is bound to the ClusterRole %q, which lets it read the manager's metrics", metricsReader)
	}
	slices.SortFunc(found, func(a, b client.ObjectKey) int { return cmp.Compare(a.String(), b.String()) })
	return found[0], nil
}

// ManagerPod finds the Pod of the active manager: the one that holds the lease or, if that cannot be seen, a running
// one.
func (h *Hub) ManagerPod(ctx context.Context) (*corev1.Pod, error) {
	pods := &corev1.PodList{}
	if err := h.client.List(ctx, pods, ManagerLabels()); err != nil {
		return nil, fmt.Errorf("cannot list the manager's Pods: %w", err)
	}
	var running []*corev1.Pod
	for i := range pods.Items {
		if pods.Items[i].Status.Phase == corev1.PodRunning {
			running = append(running, &pods.Items[i])
		}
	}
	if len(running) == 0 {
		return nil, errors.New("no Pod of the manager runs in the hub")
	}
	for _, p := range running {
		lease := &coordinationv1.Lease{}
		err := h.client.Get(ctx, client.ObjectKey{Namespace: p.Namespace, Name: LeaseName}, lease)
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err) {
			return nil, fmt.Errorf("cannot determine which Pod of the manager holds the lease: %w", err)
		}
		if lease.Spec.HolderIdentity != nil && strings.HasPrefix(*lease.Spec.HolderIdentity, p.Name+"_") {
			return p, nil
		}
	}
	return running[0], nil
}

// Metrics opens the metrics of a manager Pod, with a token of a ServiceAccount.
func (h *Hub) Metrics(ctx context.Context, pod *corev1.Pod, token string) (io.ReadCloser, error) {
	ctx, cancel := context.WithTimeout(ctx, scrapeDeadline)
	port := findMetricsPort(pod)
	transport := &http.Transport{
		DialContext: func(context.Context, string, string) (net.Conn, error) {
			return h.DialPod(ctx, client.ObjectKeyFromObject(pod), port)
		},
		// The certificate is self-signed unless the operator provided one. The API server, which is verified, says which Pod
		// answers.
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS12}, //nolint:gosec // See above.
		DisableKeepAlives: true,
	}
	body, err := getMetrics(ctx, &http.Client{Transport: transport, CheckRedirect: refuseRedirects}, "https://"+pod.Name+"/metrics", token)
	if err != nil {
		cancel()
		return nil, fmt.Errorf("cannot read the metrics of the Pod %q: %w", client.ObjectKeyFromObject(pod), err)
	}
	return &cancelling{ReadCloser: body, cancel: cancel}, nil
}

// findMetricsPort returns the metrics port of a Pod, by name.
func findMetricsPort(pod *corev1.Pod) int32 {
	for _, c := range pod.Spec.Containers {
		for _, p := range c.Ports {
			if p.Name == metricsPort {
				return p.ContainerPort
			}
		}
	}
	return defaultMetricsPort
}

// MetricsAt opens the metrics at an address that needs no token.
func MetricsAt(ctx context.Context, url string) (io.ReadCloser, error) {
	ctx, cancel := context.WithTimeout(ctx, scrapeDeadline)
	body, err := getMetrics(ctx, http.DefaultClient, url, "")
	if err != nil {
		cancel()
		return nil, fmt.Errorf("cannot read metrics: %w", err)
	}
	return &cancelling{ReadCloser: body, cancel: cancel}, nil
}

func getMetrics(ctx context.Context, c *http.Client, url, token string) (io.ReadCloser, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := c.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		_ = resp.Body.Close()
		return nil, fmt.Errorf("the answer is %d %s", resp.StatusCode, http.StatusText(resp.StatusCode))
	}
	return resp.Body, nil
}

// cancelling cancels the context of an answer after it was read.
type cancelling struct {
	io.ReadCloser

	cancel context.CancelFunc
}

// Close implements io.Closer.
func (c *cancelling) Close() error {
	err := c.ReadCloser.Close()
	c.cancel()
	return err
}
