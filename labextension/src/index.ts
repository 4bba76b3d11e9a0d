import type { JupyterFrontEndPlugin } from '@jupyterlab/application';

import { statusPlugin } from './plugins/status';

const plugins: JupyterFrontEndPlugin<void>[] = [statusPlugin];

export default plugins;
