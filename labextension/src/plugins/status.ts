import type { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { Dialog, ICommandPalette, showDialog, showErrorMessage } from '@jupyterlab/apputils';
import { URLExt } from '@jupyterlab/coreutils';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';

import { listModels } from '../api';
import { CommandIDs, NAMESPACE } from '../tokens';
import { ModelTable } from '../widgets/modelTable';

/** A command that tells what is served, and where. */
export const statusPlugin: JupyterFrontEndPlugin<void> = {
  id: `${NAMESPACE}:plugin`,
  description: 'Adds a command that shows the served models and their states.',
  autoStart: true,
  optional: [ICommandPalette, ITranslator],
  activate: (
    app: JupyterFrontEnd,
    palette: ICommandPalette | null,
    translator: ITranslator | null
  ): void => {
    const trans = (translator ?? nullTranslator).load('jupyter_tfserve');
    const settings = app.serviceManager.serverSettings;

    app.commands.addCommand(CommandIDs.showStatus, {
      label: trans.__('Show Status'),
      caption: trans.__('Show the served models, their versions and their states'),
      describedBy: { args: { type: 'object', properties: {} } },
      execute: async () => {
        try {
          const models = await listModels(settings);
          const url = URLExt.join(settings.baseUrl, 'v1/models');
          await showDialog({
            title: trans.__('TF Serve Status'),
            body: new ModelTable(models, url, trans),
            buttons: [Dialog.okButton({ label: trans.__('Close') })]
          });
        } catch (error) {
          const reason = error instanceof Error ? error : String(error);
          await showErrorMessage(trans.__('TF Serve Status Not Available'), reason);
        }
      }
    });

    palette?.addItem({ command: CommandIDs.showStatus, category: trans.__('TF Serve') });
  }
};
