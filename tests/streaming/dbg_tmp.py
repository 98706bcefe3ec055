import django
django.setup()
import pdfpool_django.async_views as av
orig = av._close
def _close(done, stack):
    print("CLOSE", done, stack._exit_callbacks, flush=True)
    orig(done, stack)
    print("CLOSED", flush=True)
av._close = _close
