import { queue } from '../../index';
export = queue;
