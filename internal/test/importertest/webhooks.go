// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package importertest

import (
	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// azureWebhook refuses what the admission webhooks of Cluster API Provider Azure refuse of what an import writes
// (internal/webhooks/azuremanagedcontrolplane_validation.go and azuremanagedmachinepool_validation.go of v1.23.0). A
// policy cannot read the Cluster: that there is none yet, or that it is not being deleted, is assumed.
func azureWebhook() *admissionv1.ValidatingAdmissionPolicy {
	return NewWebhookPolicy("azure-webhook", []string{"azuremanagedcontrolplanes", "azuremanagedmachinepools"}, []admissionv1.Validation{
		{
			Message:    "the Cluster is not found",
			Expression: "request.operation != 'CREATE' || object.kind != 'AzureManagedControlPlane' || !variables.ofCluster",
		},
		{
			Message:    "DisableLocalAccounts should be set only for AAD enabled clusters",
			Expression: "!has(variables.is.spec.disableLocalAccounts) || has(variables.is.spec.aadProfile)",
		},
		{
			Message:    "spec.aadProfile: Invalid value: null: field cannot be nil, cannot disable AADProfile",
			Expression: "request.operation != 'UPDATE' || !has(oldObject.spec.aadProfile) || has(object.spec.aadProfile)",
		},
		{
			Message: "spec.disableLocalAccounts: Invalid value: null: field is immutable",
			Expression: "request.operation != 'UPDATE' || !has(oldObject.spec.disableLocalAccounts) " +
				"|| object.spec.?disableLocalAccounts == oldObject.spec.?disableLocalAccounts",
		},
		{
			Message:    "Node pool label key must not start with kubernetes.azure.com",
			Expression: "variables.is.spec.?nodeLabels.orValue({}).all(key, !key.startsWith('kubernetes.azure.com'))",
		},
		{
			Message: "AKS Cluster must have at least one system pool",
			Expression: "request.operation != 'DELETE' || variables.is.spec.?mode.orValue('') != 'System' || !variables.ofCluster " +
				"|| 'clusterctl.cluster.x-k8s.io/delete-for-move' in variables.is.metadata.?annotations.orValue({})",
		},
	})
}

// googleWebhook refuses what the admission webhooks of Cluster API Provider GCP refuse of what an import writes
// (exp/webhooks/gcpmanagedcontrolplane_webhook.go and gcpmanagedmachinepool_webhook.go of v1.13.1).
func googleWebhook() *admissionv1.ValidatingAdmissionPolicy {
	const autopilot = "!variables.is.spec.?enableAutopilot.orValue(false) || "
	return NewWebhookPolicy("google-webhook", []string{"gcpmanagedcontrolplanes", "gcpmanagedmachinepools"}, []admissionv1.Validation{
		{
			Message:    "Release channel is required for an autopilot enabled cluster",
			Expression: "request.operation != 'CREATE' || " + autopilot + "has(object.spec.releaseChannel)",
		},
		{
			Message:    "spec.LoggingService can't be set when autopilot is enabled",
			Expression: autopilot + "!has(variables.is.spec.loggingService)",
		},
		{
			Message:    "spec.MonitoringService can't be set when autopilot is enabled",
			Expression: autopilot + "!has(variables.is.spec.monitoringService)",
		},
		{
			Message: "spec.EnableAutopilot: field is immutable",
			Expression: "request.operation != 'UPDATE' || " +
				"object.spec.?enableAutopilot.orValue(false) == oldObject.spec.?enableAutopilot.orValue(false)",
		},
		{
			Message: "cannot be specified when autoscaling is disabled",
			Expression: "variables.is.spec.?scaling.?enableAutoscaling.orValue(true) " +
				"|| !['minCount', 'maxCount', 'locationPolicy'].exists(field, field in variables.is.spec.scaling)",
		},
	})
}

// NewWebhookPolicy is a policy that stands for the webhooks of a provider, for some of its kinds.
func NewWebhookPolicy(name string, resources []string, validations []admissionv1.Validation) *admissionv1.ValidatingAdmissionPolicy {
	rule := admissionv1.NamedRuleWithOperations{RuleWithOperations: admissionv1.RuleWithOperations{
		Operations: []admissionv1.OperationType{admissionv1.Create, admissionv1.Update, admissionv1.Delete},
		Rule:       admissionv1.Rule{APIGroups: []string{"*"}, APIVersions: []string{"*"}, Resources: resources},
	}}
	return &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: admissionv1.ValidatingAdmissionPolicySpec{
		MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{rule}},
		Variables: []admissionv1.Variable{
			{Name: "is", Expression: "request.operation == 'DELETE' ? oldObject : object"},
			{Name: "ofCluster", Expression: "'cluster.x-k8s.io/cluster-name' in variables.is.metadata.?labels.orValue({})"},
		},
		Validations: validations,
	}}
}

// NewBinding puts a policy in force.
func NewBinding(policy *admissionv1.ValidatingAdmissionPolicy) *admissionv1.ValidatingAdmissionPolicyBinding {
	return &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: policy.Name},
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: policy.Name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
		},
	}
}
