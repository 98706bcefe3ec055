"""The form of the upload page."""

from __future__ import annotations

from django import forms
from django.utils.translation import gettext_lazy as _


class UploadForm(forms.Form):
    """What the page for people asks; what it sends is checked by `uploads`."""

    file = forms.FileField(
        label=_("PDF file"), widget=forms.FileInput(attrs={"accept": "application/pdf,.pdf"})
    )
    pages = forms.CharField(
        label=_("Pages"),
        required=False,
        help_text=_("Like 1-3,7; leave it empty for all."),
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )
    password = forms.CharField(
        label=_("Password"),
        required=False,
        help_text=_("Only if the file is locked."),
        widget=forms.PasswordInput(attrs={"autocomplete": "off"}),
    )
