// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package importertest

import (
	"context"
	"debug/buildinfo"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/masthead-dev/masthead/internal/test/providercrds"
	"github.com/masthead-dev/masthead/internal/test/testenv"
)

// WebhooksEnv names the folder of the programs that make webhooks builds.
const WebhooksEnv = "MASTHEAD_WEBHOOKS"

// refuse makes the hub refuse what the webhooks of Cluster API's providers refuse.
func (h *Hub) refuse(ctx context.Context, kubeconfig []byte) (err error) {
	if h.webhooks, err = StartWebhooks(ctx, h.Config, kubeconfig); err != nil || h.webhooks != nil {
		return err
	}
	for _, webhook := range []*admissionv1.ValidatingAdmissionPolicy{azureWebhook(), googleWebhook()} {
		if err := errors.Join(h.Client.Create(ctx, webhook), h.Client.Create(ctx, NewBinding(webhook))); err != nil {
			return fmt.Errorf("cannot install what stands for a webhook: %w", err)
		}
	}
	return nil
}

// Webhooks are the webhooks of Cluster API's providers, while programs serve them.
type Webhooks []*webhookProgram

// StartWebhooks installs the webhooks in a hub. There are none if the variable MASTHEAD_WEBHOOKS names no folder. Those
// that it returns with an error must be stopped, too.
func StartWebhooks(ctx context.Context, hub *rest.Config, kubeconfig []byte) (webhooks Webhooks, err error) {
	folder := os.Getenv(WebhooksEnv)
	if folder == "" {
		return nil, nil
	}
	all, err := providercrds.LoadWebhooks(ctx)
	if err != nil {
		return nil, err
	}
	for _, w := range all {
		started, err := startWebhooks(ctx, folder, kubeconfig, w)
		if err != nil {
			return webhooks, fmt.Errorf("cannot serve the webhooks of %s: %w", w.Program, err)
		}
		webhooks = append(webhooks, started)
		if err := started.options.Install(hub); err != nil {
			return webhooks, fmt.Errorf("cannot install the webhooks of %s: %w", w.Program, err)
		}
	}
	return webhooks, nil
}

// webhookProgram is a program of hack/webhooks that serves the webhooks of a provider.
type webhookProgram struct {
	options envtest.WebhookInstallOptions
	command *exec.Cmd
	stdin   io.Closer
}

func startWebhooks(ctx context.Context, folder string, kubeconfig []byte, w providercrds.Webhooks) (started *webhookProgram, err error) {
	started = &webhookProgram{options: envtest.WebhookInstallOptions{Paths: []string{w.Manifests}}}
	o := &started.options
	defer func() {
		if err != nil {
			err = errors.Join(err, o.Cleanup())
		}
	}()
	if err := o.PrepWithoutInstalling(); err != nil {
		return nil, err
	}
	others := func(rules []admissionv1.RuleWithOperations) bool {
		return !slices.ContainsFunc(rules, func(r admissionv1.RuleWithOperations) bool { return slices.Contains(w.Resources, r.Resources[0]) })
	}
	for _, c := range o.MutatingWebhooks {
		c.Name = w.Program
		c.Webhooks = slices.DeleteFunc(c.Webhooks, func(w admissionv1.MutatingWebhook) bool { return others(w.Rules) })
	}
	for _, c := range o.ValidatingWebhooks {
		c.Name = w.Program
		c.Webhooks = slices.DeleteFunc(c.Webhooks, func(w admissionv1.ValidatingWebhook) bool { return others(w.Rules) })
	}
	if len(o.MutatingWebhooks) != 1 || len(o.ValidatingWebhooks) != 1 || len(o.MutatingWebhooks[0].Webhooks) == 0 || len(o.ValidatingWebhooks[0].Webhooks) == 0 {
		return nil, fmt.Errorf("%s has no webhooks for %v", w.Manifests, w.Resources)
	}
	path := filepath.Join(o.LocalServingCertDir, "kubeconfig")
	if err := os.WriteFile(path, kubeconfig, 0o600); err != nil {
		return nil, err
	}
	port := strconv.Itoa(o.LocalServingPort)
	started.command = exec.Command(
		filepath.Join(folder, w.Program),
		"--kubeconfig", path, "--cert-dir", o.LocalServingCertDir, "--host", o.LocalServingHost, "--port", port,
	)
	started.command.Stderr = os.Stderr
	if started.stdin, err = started.command.StdinPipe(); err != nil {
		return nil, err
	}
	if err := started.command.Start(); err != nil {
		return nil, err
	}
	err = testenv.Poll(ctx, testenv.Patience, func(ctx context.Context) (bool, error) {
		connection, err := (&net.Dialer{}).DialContext(ctx, "tcp", net.JoinHostPort(o.LocalServingHost, port))
		return err == nil && connection.Close() == nil, nil
	})
	if err != nil {
		return nil, errors.Join(err, started.stop())
	}
	return started, nil
}

// stop ends the program.
func (p *webhookProgram) stop() error {
	_ = p.stdin.Close()
	return errors.Join(p.command.Wait(), p.options.Cleanup())
}

// Stop ends the programs.
func (webhooks Webhooks) Stop() error {
	var problems []error
	for _, w := range webhooks {
		problems = append(problems, w.stop())
	}
	return errors.Join(problems...)
}

// WebhookVersions are the versions of the providers whose webhooks hubs have, by the name of their program. They are
// empty where policies stand for them.
func WebhookVersions(ctx context.Context) (map[string]string, error) {
	versions, folder := map[string]string{}, os.Getenv(WebhooksEnv)
	if folder == "" {
		return versions, nil
	}
	all, err := providercrds.LoadWebhooks(ctx)
	if err != nil {
		return nil, err
	}
	for _, w := range all {
		info, err := buildinfo.ReadFile(filepath.Join(folder, w.Program))
		if err != nil {
			return nil, fmt.Errorf("cannot read the version of %s: %w", w.Program, err)
		}
		for _, m := range info.Deps {
			if m.Path == w.Module {
				versions[w.Program] = m.Version
			}
		}
	}
	return versions, nil
}

// PinnedVersions are the versions of the providers whose CRDs tests use, by the name of the program with their
// webhooks.
func PinnedVersions(ctx context.Context) (map[string]string, error) {
	file, err := os.ReadFile(filepath.Join(testenv.Root(), "hack", "providers", "go.mod"))
	if err != nil {
		return nil, err
	}
	all, err := providercrds.LoadWebhooks(ctx)
	if err != nil {
		return nil, err
	}
	versions := map[string]string{}
	for _, w := range all {
		_, after, _ := strings.Cut(string(file), "\t"+w.Module+" ")
		versions[w.Program], _, _ = strings.Cut(after, "\n")
	}
	return versions, nil
}

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
