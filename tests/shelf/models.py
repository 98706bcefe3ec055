"""A site's own documents: the model that the README shows."""

from django.db import models

from pdfpool_django.errors import PdfPoolError
from pdfpool_django.extraction import extract


class Report(models.Model):
    file = models.FileField(upload_to="reports")
    text = models.TextField(default="", blank=True)
    problem = models.CharField(max_length=40, default="", blank=True)

    def __str__(self) -> str:
        return self.file.name

    def read_text(self) -> None:
        """Fill in the text; what cannot be read leaves its code."""
        try:
            extraction = extract(self.file, caller=f"report:{self.pk}")
        except PdfPoolError as error:
            if error.retryable:  # busy: nothing is known of the file yet
                raise
            self.text, self.problem = "", error.code
        else:
            self.text = extraction.text
            self.problem = "" if extraction.complete else "incomplete"
        self.save(update_fields=["text", "problem"])
