// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package health

import (
	corev1 "k8s.io/api/core/v1"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
)

// service waits for a load balancer's address, which kstatus does not.
func service(s fields) (Result, bool) {
	if corev1.ServiceType(s.text("spec", "type")) != corev1.ServiceTypeLoadBalancer {
		return healthy(), true
	}
	return loadBalancer(s, "The load balancer of the Service has no address yet"), true
}

// ingress is not known to kstatus. A controller of Ingresses that publishes no addresses needs a HealthRule.
func ingress(i fields) (Result, bool) {
	return loadBalancer(i, "The Ingress has no address yet"), true
}

// loadBalancer requires one address. Some load balancers have an IP address, others only a hostname.
func loadBalancer(o fields, pending string) Result {
	for _, address := range o.parts("status", "loadBalancer", "ingress") {
		if address.text("ip") != "" || address.text("hostname") != "" {
			return healthy()
		}
	}
	return progressing(appsv1alpha1.ReasonLoadBalancerPending, pending)
}
